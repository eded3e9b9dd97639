import AsyncHTTPClient
import Foundation
import NIOCore
import NIOHTTP1

/// Somebody who calls one server over HTTP, like `curl` does.
struct Caller: Sendable {
  /// What a server answered.
  struct Answer: Sendable {
    let status: Int
    let headers: [String: String]
    let body: Data

    /// The body as text.
    var text: String { String(decoding: body, as: UTF8.self) }

    /// The body as a JSON object.
    var json: [String: Any] {
      get throws { try JSONSerialization.jsonObject(with: body) as? [String: Any] ?? [:] }
    }
  }

  /// Scheme, host and port.
  let base: String

  /// Without credentials.
  func get(_ path: String, user: String? = nil) async throws -> Answer { try await call("GET", path, user: user) }

  /// As a user of the demo authenticator, whose password is the name.
  func call(
    _ method: String, _ path: String, user: String? = nil, body: String? = nil, type: String = "application/json",
    headers: [(String, String)] = []
  ) async throws -> Answer {
    var request = HTTPClientRequest(url: base + path)
    request.method = .init(rawValue: method)
    if let user {
      request.headers.add(name: "authorization", value: "Basic " + Data("\(user):\(user)".utf8).base64EncodedString())
    }
    for (name, value) in headers { request.headers.add(name: name, value: value) }
    if let body {
      request.headers.add(name: "content-type", value: type)
      request.body = .bytes(ByteBuffer(string: body))
    }
    let response = try await HTTPClient.shared.execute(request, timeout: .seconds(30))
    let answer = try await response.body.collect(upTo: 64 << 20)
    return Answer(
      status: Int(response.status.code),
      headers: Dictionary(response.headers.map { ($0.name.lowercased(), $0.value) }) { first, _ in first },
      body: Data(answer.readableBytesView))
  }
}
