import AsyncHTTPClient
import FoundationEssentials
import NIOCore
import NIOHTTP1

/// A client of the HTTP API.
struct APIClient: Sendable {
  /// An error answer of the API.
  struct Refusal: Error, CustomStringConvertible {
    /// The HTTP status.
    let status: Int
    let description: String
  }

  let base: String

  /// The client, without connection retries: a restarted process listens on another port.
  ///
  /// A request never waits for a connection that others use: with the default of 8 connections for each server, normal
  /// callers beside an attacker would be measured in the queue of this client.
  static let http: HTTPClient = {
    var configuration = HTTPClient.Configuration.singletonConfiguration
    configuration.connectionPool.retryConnectionEstablishment = false
    configuration.connectionPool.concurrentHTTP1ConnectionsPerHostSoftLimit = 256
    return HTTPClient(eventLoopGroupProvider: .singleton, configuration: configuration)
  }()

  /// Sends a request as the user and returns the body. Throws unless the status is 2xx.
  ///
  /// The user's password is the name.
  func request(_ method: String, _ path: String, user: String, body: String? = nil, type: String = "application/json")
    async throws -> Data
  {
    let credentials = "Basic " + Data("\(user):\(user)".utf8).base64EncodedString()
    return try await request(method, path, authorization: credentials, body: body, type: type)
  }

  /// Sends a request with credentials and returns the body. Throws unless the status is 2xx.
  func request(
    _ method: String, _ path: String, authorization: String, body: String? = nil, type: String = "application/json"
  ) async throws -> Data {
    var request = HTTPClientRequest(url: base + path)
    request.method = .init(rawValue: method)
    request.headers.add(name: "authorization", value: authorization)
    if let body {
      request.headers.add(name: "content-type", value: type)
      request.body = .bytes(ByteBuffer(string: body))
    }
    let response = try await Self.http.execute(request, timeout: .seconds(30))
    let answer = try await response.body.collect(upTo: 4 << 20)
    guard (200..<300).contains(response.status.code) else {
      throw Refusal(
        status: Int(response.status.code),
        description: "\(method) \(path): \(response.status.code) \(String(buffer: answer))")
    }
    return Data(answer.readableBytesView)
  }
}
