import Crypto
import FanfareCore
import FoundationEssentials
import FrontEnd
import HTTPServer

/// A token of Azure: `SharedAccessSignature sr=…&sig=…&se=…&skn=…`, with its parts in any order.
///
/// `sig` is the HMAC-SHA256 of `sr`, a line feed and `se` under a rule's key, where `sr` is the percent-encoded text of
/// the token as it is: clients encode with hexadecimal digits in lower or in upper case.
struct SharedAccessToken: Hashable, Sendable {
  /// The most bytes of a token. `sr` is a whole URL, encoded once or twice.
  static let maximumLength = 8192
  private static let scheme = "SharedAccessSignature"

  /// `sr` as given.
  let resource: String
  let signature: [UInt8]
  /// `se` as given, and as a time.
  let expiryText: String
  let expiry: UnixTime
  /// `skn`
  let keyName: String

  /// Whether the value of `Authorization` has the scheme of these tokens.
  static func isToken(_ field: String) -> Bool {
    field.utf8.prefix(scheme.utf8.count).elementsEqual(scheme.utf8) { $0 | 0x20 == $1 | 0x20 }
  }

  /// Parses the value of `Authorization`; nil if it is malformed.
  init?(_ field: String) {
    guard Self.isToken(field), field.utf8.count <= Self.maximumLength else { return nil }
    var parts: [Substring: Substring] = [:]
    let text = field.dropFirst(Self.scheme.count).drop { $0 == " " }
    for part in text.split(separator: "&") {
      guard let sign = part.firstIndex(of: "="),
        parts.updateValue(part[part.index(after: sign)...], forKey: part[..<sign]) == nil
      else { return nil }
    }
    guard let resource = parts["sr"], let se = parts["se"], let seconds = Int64(se), (0...1 << 40).contains(seconds),
      let signature = parts["sig"].flatMap({ Exchange.decoded($0) }).flatMap({ Data(base64Encoded: $0) }),
      let keyName = parts["skn"].flatMap({ Exchange.decoded($0) })
    else { return nil }
    self.resource = String(resource)
    self.signature = Array(signature)
    expiryText = String(se)
    expiry = UnixTime(milliseconds: seconds * 1000)
    self.keyName = keyName
  }

  /// Whether the token was signed with the key, in a time that does not depend on the signature.
  func isSigned(with key: String) -> Bool {
    HMAC<SHA256>.isValidAuthenticationCode(
      signature, authenticating: Data("\(resource)\n\(expiryText)".utf8),
      using: SymmetricKey(data: Data(key.utf8)))
  }

  /// Whether the resource is the beginning of the URL: its host, or one of several names of the server, and the first
  /// components of its path. Scheme, port and letter case play no part, and the resource's query neither. The
  /// client sent `host`, so it proves nothing.
  func covers(host: String, path: String, names: [String]) -> Bool {
    guard let text = Exchange.decoded(resource), let scheme = text.firstRange(of: "://") else { return false }
    let rest = text[scheme.upperBound...].prefix { $0 != "?" && $0 != "#" }
    let own = Self.name(ofHost: rest.prefix { $0 != "/" })
    guard own == Self.name(ofHost: host) || names.contains(where: { Self.name(ofHost: $0) == own }) else {
      return false
    }
    let signed = Self.components(rest.drop { $0 != "/" })
    let requested = Self.components(path)
    return signed.count <= requested.count && zip(signed, requested).allSatisfy(==)
  }

  /// The host without its port.
  private static func name(ofHost host: some StringProtocol) -> String {
    let text = host.lowercased()
    guard let colon = text.lastIndex(of: ":"), text[text.index(after: colon)...].allSatisfy(\.isNumber) else {
      return text
    }
    return String(text[..<colon])
  }

  private static func components(_ path: some StringProtocol) -> [String] {
    path.split(separator: "/").map { (Exchange.decoded($0) ?? String($0)).lowercased() }
  }
}
