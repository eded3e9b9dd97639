import AsyncHTTPClient
import FanfareCore
import Foundation
import NIOCore
import NIOHTTP1
import NIOSSL
import Roles
import SettingsTable

/// A client of a hub's routes of the HTTP API.
struct APIClient: Sendable {
  enum Method: String { case GET, POST, PUT, DELETE }

  /// The longest answer.
  private static let limit = 16 << 20
  private static let patience = Duration.seconds(30)

  private let http: HTTPClient
  private let profile: Profile
  /// The path of the hub's root.
  private let root: String

  /// Runs `body` with a client, and closes its connections afterwards.
  ///
  /// `hub` takes the place of the profile's. Throws `SettingsError` for unusable trust roots.
  static func with<Value>(
    _ profile: Profile, hub: String?, _ body: (APIClient) async throws -> Value
  ) async throws -> Value {
    var configuration = HTTPClient.Configuration()
    configuration.timeout.connect = .seconds(10)
    if let file = profile.trustRootsFile {
      var tls = TLSConfiguration.makeClientConfiguration()
      do { tls.trustRoots = .certificates(try NIOSSLCertificate.fromPEMFile(file)) } catch {
        throw SettingsError("trustRootsFile", "must name a file with certificates in PEM: \(file)")
      }
      configuration.tlsConfiguration = tls
    }
    let http = HTTPClient(eventLoopGroupProvider: .singleton, configuration: configuration)
    let result: Result<Value, any Error>
    do { result = .success(try await body(APIClient(http: http, profile: profile, hub: hub))) } catch {
      result = .failure(error)
    }
    try await http.shutdown()
    return try result.get()
  }

  private init(http: HTTPClient, profile: Profile, hub: String?) {
    (self.http, self.profile) = (http, profile)
    root = (hub ?? profile.hub).map { "/hubs/\(Self.escaped($0))" } ?? ""
  }

  /// Sends a request and returns the body of a 2xx answer.
  ///
  /// Empty values of the query are left out. Throws `APIRefusal`, and `APIUnreachable` without an answer.
  func call(
    _ method: Method, _ path: String, query: [(String, String?)] = [], body: Data? = nil,
    headers: [(String, String)] = []
  ) async throws -> Data {
    let pairs = query.compactMap { name, value in value.map { "\(name)=\(Self.escaped($0))" } }
    let parameters = pairs.isEmpty ? "" : "?" + pairs.joined(separator: "&")
    var request = HTTPClientRequest(url: profile.url + root + path + parameters)
    request.method = .RAW(value: method.rawValue)
    request.headers.add(name: "user-agent", value: "fanfare/\(Build.version)")
    for (name, value) in headers { request.headers.add(name: name, value: value) }
    switch profile.credentials {
    case .key(let key): request.headers.add(name: "authorization", value: "Bearer \(key)")
    case .password(let user, let password):
      let pair = Data("\(user):\(password)".utf8).base64EncodedString()
      request.headers.add(name: "authorization", value: "Basic \(pair)")
    case nil: break
    }
    if let body {
      request.headers.add(name: "content-type", value: "application/json")
      request.body = .bytes(ByteBuffer(bytes: body))
    }
    let response: HTTPClientResponse
    let content: Data
    do {
      response = try await http.execute(
        request, timeout: .nanoseconds(Int64(clamping: Self.patience / .nanoseconds(1))))
      content = Data(try await response.body.collect(upTo: Self.limit).readableBytesView)
    } catch {
      throw APIUnreachable(profile.url, error)
    }
    guard (200..<300).contains(response.status.code) else {
      throw APIRefusal(
        status: Int(response.status.code), body: content,
        retryAfter: response.headers.first(name: "retry-after").flatMap { Int($0) })
    }
    return content
  }

  /// Sends a request and decodes the answer.
  func call<Answer: Decodable>(
    _ method: Method, _ path: String, as type: Answer.Type, query: [(String, String?)] = [], body: Data? = nil,
    headers: [(String, String)] = []
  ) async throws -> Answer {
    let answer = try await call(method, path, query: query, body: body, headers: headers)
    do { return try JSONDecoder().decode(type, from: answer) } catch { throw APIUnreachable(profile.url, error) }
  }

  /// A value for a segment of a path or a parameter of a query.
  static func escaped(_ text: String) -> String {
    var allowed = CharacterSet(charactersIn: "-._~")
    allowed.formUnion(CharacterSet(charactersIn: "a"..."z"))
    allowed.formUnion(CharacterSet(charactersIn: "A"..."Z"))
    allowed.formUnion(CharacterSet(charactersIn: "0"..."9"))
    // Nil only for text with half of a surrogate pair, which Swift's strings cannot have.
    return text.addingPercentEncoding(withAllowedCharacters: allowed) ?? ""
  }
}
