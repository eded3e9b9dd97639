import AsyncHTTPClient
import Crypto
import FoundationEssentials
import NIOCore
import NIOHTTP1

/// A client of the Azure door: signs each request with the key of a rule, as Azure's SDKs do.
struct AzureClient: Sendable {
  struct Answer: Sendable {
    let status: Int
    let headers: HTTPHeaders
    let body: String

    /// The last part of the path in `Location`; nil without one.
    var id: String? {
      headers.first(name: "location")?.split(separator: "?").first?.split(separator: "/").last.map(String.init)
    }
  }

  /// The address of the api: scheme, host and port.
  let base: String
  let rule: String
  let key: String
  let hub = "default"

  /// The string that an application uses.
  var connectionString: String { "Endpoint=\(base)/;SharedAccessKeyName=\(rule);SharedAccessKey=\(key)" }

  /// Sends a request. `path` is below the hub.
  func send(
    _ method: String, _ path: String, headers: [(String, String)] = [], body: String? = nil
  ) async throws -> Answer {
    var request = HTTPClientRequest(url: "\(base)/\(hub)\(path)?api-version=2020-06")
    request.method = .init(rawValue: method)
    request.headers = HTTPHeaders(headers)
    request.headers.add(name: "authorization", value: Self.token(for: "\(base)/\(hub)", rule: rule, key: key))
    if let body { request.body = .bytes(ByteBuffer(string: body)) }
    let response = try await APIClient.http.execute(request, timeout: .seconds(30))
    let answer = try await response.body.collect(upTo: 4 << 20)
    return Answer(status: Int(response.status.code), headers: response.headers, body: String(buffer: answer))
  }

  /// A token for everything below the URL, valid for an hour.
  static func token(for url: String, rule: String, key: String) -> String {
    let (resource, expiry) = (escaped(url.lowercased()), Int(Date().timeIntervalSince1970) + 3600)
    let signature = HMAC<SHA256>.authenticationCode(
      for: Data("\(resource)\n\(expiry)".utf8), using: SymmetricKey(data: Data(key.utf8)))
    return "SharedAccessSignature sr=\(resource)&sig=\(escaped(Data(signature).base64EncodedString()))"
      + "&se=\(expiry)&skn=\(escaped(rule))"
  }

  /// Percent-encodes everything but letters, digits and `-_.`, with digits in lower case, as .NET does.
  static func escaped(_ text: String) -> String {
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
