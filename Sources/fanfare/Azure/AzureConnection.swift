import Crypto
import FanfareCore
import Foundation

/// A connection string of Azure Notification Hubs: where a namespace is, and a rule's key.
///
/// `Endpoint=sb://host[:port]/[path/];SharedAccessKeyName=…;SharedAccessKey=…`, with an optional `EntityPath`, the hub.
struct AzureConnection: Sendable {
  /// A text that is no such string. The error contains no part of it.
  struct Invalid: Error, CustomStringConvertible {
    let description: String
  }

  /// Scheme, host, port and path, without a slash at the end.
  let base: String
  let rule: String
  private let key: String
  /// The hub that the string names, if any.
  let hub: String?

  /// Parses a string. Plain HTTP is accepted on loopback addresses only.
  init(_ text: String) throws(Invalid) {
    var members: [String: String] = [:]
    for part in text.split(separator: ";") {
      guard let equals = part.firstIndex(of: "=") else {
        throw Invalid(description: "each part must be NAME=VALUE")
      }
      let name = part[..<equals].trimmingCharacters(in: .whitespacesAndNewlines).lowercased()
      members[name] = part[part.index(after: equals)...].trimmingCharacters(in: .whitespacesAndNewlines)
    }
    func member(_ name: String) throws(Invalid) -> String {
      guard let value = members[name.lowercased()], !value.isEmpty else { throw Invalid(description: "lacks \(name)") }
      return value
    }
    rule = try member("SharedAccessKeyName")
    key = try member("SharedAccessKey")
    hub = members["entitypath"]
    guard let url = URLComponents(string: try member("Endpoint")), let scheme = url.scheme?.lowercased(),
      let host = url.host, !host.isEmpty
    else { throw Invalid(description: "has no Endpoint of the form sb://host/") }
    let isLoopback = ["127.0.0.1", "[::1]", "::1", "localhost"].contains(host)
    guard ["sb", "https", "amqps"].contains(scheme) || (scheme == "http" && isLoopback) else {
      throw Invalid(description: "must have an Endpoint of sb, or of http on a loopback address")
    }
    // Azure has no path; Fanfare has one with `azure.prefix`.
    let path = url.percentEncodedPath.split(separator: "/").map { "/\($0)" }.joined()
    base = "\(scheme == "http" ? "http" : "https")://\(host)" + (url.port.map { ":\($0)" } ?? "") + path
  }

  /// The value of `Authorization` for a hub, good for an hour.
  func authorization(for hub: String, at time: Date) -> String {
    let resource = Self.escaped("\(base)/\(hub)".lowercased())
    let expiry = Int(clamping: time.timeIntervalSince1970 + 3600)
    // The key is used as the text that it is: not decoded.
    let signature = HMAC<SHA256>.authenticationCode(
      for: Data("\(resource)\n\(expiry)".utf8), using: SymmetricKey(data: Data(key.utf8)))
    return "SharedAccessSignature sr=\(resource)&sig=\(Self.escaped(Data(signature).base64EncodedString()))"
      + "&se=\(expiry)&skn=\(Self.escaped(rule))"
  }

  /// Percent-encodes with lower-case digits, which the signature covers.
  private static func escaped(_ text: String) -> String {
    text.utf8.map { byte in
      switch byte {
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
        UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"), UInt8(ascii: "."):
        String(UnicodeScalar(byte))
      default: "%" + (byte < 16 ? "0" : "") + String(byte, radix: 16)
      }
    }.joined()
  }
}

extension AzureConnection: CustomStringConvertible, CustomReflectable {
  /// Omits the key.
  var description: String { "\(base) as \(rule)" }
  var customMirror: Mirror { Mirror(self, children: ["base": base, "rule": rule]) }
}
