import AsyncHTTPClient
import FanfareCore
import FoundationEssentials
import Logging
import NIOCore
import NIOHTTP1
import NIOPosix
import NIOSSL
import Synchronization

/// A client of one OAuth 2 token endpoint.
struct TokenClient: Sendable {
  typealias Field = (name: String, value: String)

  /// The most bytes of an answer, which holds a token and little else.
  private static let maximumAnswerBytes = 64 * 1024

  let client: HTTPClient
  let url: String
  let timeout: Duration
  let clock: any WallClock
  let logger: Logger

  /// Posts a form and reads the answer. Any failure on the way counts as an unavailable endpoint.
  func post(_ form: [Field]) async -> TokenAnswer { await post(form, authorization: nil) }

  /// Posts a form as a client that authenticates with its id and secret (RFC 6749 §2.3.1), and reads the answer.
  func post(_ form: [Field], user: String, password: String) async -> TokenAnswer {
    let credentials = Data(Array(Self.escape(user).utf8) + [UInt8(ascii: ":")] + Array(Self.escape(password).utf8))
    return await post(form, authorization: "Basic \(credentials.base64EncodedString())")
  }

  private func post(_ form: [Field], authorization: String?) async -> TokenAnswer {
    var request = HTTPClientRequest(url: url)
    if let authorization { request.headers.add(name: "authorization", value: authorization) }
    request.method = .POST
    request.headers.add(name: "content-type", value: "application/x-www-form-urlencoded")
    request.headers.add(name: "accept", value: "application/json")
    request.body = .bytes(ByteBuffer(bytes: Self.encode(form)))
    do { return try await answer(to: request) } catch {
      logger.warning("Token endpoint not reached", metadata: [LogKeys.error: "\(error)"])
      return .unavailable(status: 0, retryAfter: nil)
    }
  }

  /// Reads the whole answer. The client's own timeout ends with the response head, so this one covers the body too.
  private func answer(to request: HTTPClientRequest) async throws -> TokenAnswer {
    try await withThrowingTaskGroup(of: TokenAnswer.self) { group in
      group.addTask {
        let response = try await client.execute(request, timeout: TimeAmount(timeout))
        let body = try await response.body.collect(upTo: Self.maximumAnswerBytes)
        return TokenAnswer(
          status: Int(response.status.code), body: Array(body.readableBytesView),
          retryAfter: response.headers.first(name: "retry-after"), now: clock.now())
      }
      group.addTask {
        try await Task.sleep(for: timeout)
        throw HTTPClientError.deadlineExceeded
      }
      defer { group.cancelAll() }
      guard let answer = try await group.next() else { throw HTTPClientError.cancelled }
      return answer
    }
  }

  /// Encodes as `application/x-www-form-urlencoded`: escapes everything except the characters that RFC 3986 §2.3 calls
  /// unreserved.
  static func encode(_ form: [Field]) -> [UInt8] {
    Array(form.map { "\(escape($0.name))=\(escape($0.value))" }.joined(separator: "&").utf8)
  }

  private static func escape(_ text: String) -> String {
    text.utf8.reduce(into: "") { output, byte in
      if byte.isLetterOrDigit || "-._~".utf8.contains(byte) {
        output.unicodeScalars.append(Unicode.Scalar(byte))
      } else {
        // Upper case, as RFC 3986 §2.1 recommends.
        output += (byte < 0x10 ? "%0" : "%") + String(byte, radix: 16, uppercase: true)
      }
    }
  }
}

extension HTTPClient {
  /// Threads that no client uses now. They are never ended, because a name lookup may outlast its client and returns to
  /// its thread.
  private static let idleThreads = Mutex<[MultiThreadedEventLoopGroup]>([])

  /// Runs `body` with a client for token endpoints and WNS: HTTP/1.1 with kept-alive connections and without redirects,
  /// which would send credentials to another host.
  ///
  /// The client has a thread of its own, because NIO's name lookups on one thread wait for one another: a slow one
  /// would delay other services and hubs. If a connection cannot be made, the requests that wait for it fail at once;
  /// the caller decides when to retry.
  static func withPushService(
    tls: TLSConfiguration, maximumConnectionsPerHost: Int, _ body: (HTTPClient) async -> Void
  ) async {
    var configuration = HTTPClient.Configuration(
      tlsConfiguration: tls, redirectConfiguration: .disallow, timeout: .init(connect: .seconds(5)))
    configuration.httpVersion = .http1Only
    configuration.connectionPool.concurrentHTTP1ConnectionsPerHostSoftLimit = maximumConnectionsPerHost
    configuration.connectionPool.retryConnectionEstablishment = false
    // The one that has been idle for the longest time.
    let idle = idleThreads.withLock { $0.isEmpty ? nil : $0.removeFirst() }
    let group = idle ?? MultiThreadedEventLoopGroup(numberOfThreads: 1)
    let client = HTTPClient(eventLoopGroupProvider: .shared(group), configuration: configuration)
    await body(client)
    // A failed shutdown leaves nothing to do: all requests have ended.
    try? await client.shutdown()
    idleThreads.withLock { $0.append(group) }
  }
}

/// One answer of an OAuth 2 token endpoint (RFC 6749 §5.1 and §5.2).
enum TokenAnswer: Sendable {
  /// A token and its lifetime.
  case granted(String, lifetime: Duration)
  /// The endpoint refuses these credentials; an operator has to act.
  case refused(reason: String, status: Int)
  /// The endpoint cannot answer now.
  case unavailable(status: Int, retryAfter: Duration?)

  /// The lifetime if the answer has none; the endpoints in use grant at least an hour.
  static let defaultLifetime: Duration = .seconds(3600)

  /// `expires_in` may be a number, a string that holds one, or missing.
  init(status: Int, body: [UInt8], retryAfter: String?, now: UnixTime) {
    var token: String?
    var lifetime: Int64?
    var code: String?
    do {
      var reader = try JSONReader(body[...])
      try reader.readObject { (key, reader) throws(JSONError) in
        switch (key, try reader.nextKind()) {
        case ("access_token", .string): token = try reader.readString()
        case ("expires_in", .string): lifetime = Int64(try reader.readString())
        case ("expires_in", .number): lifetime = Int64(String(decoding: try reader.readRaw(), as: UTF8.self))
        case ("error", .string): code = try reader.readString()
        default: try reader.skipValue()
        }
      }
      try reader.finish()
    } catch {
      // A truncated answer may hold a truncated token.
      token = nil
    }
    switch status {
    case 200:
      guard let token, HeaderValue.isVisibleASCII(token), lifetime ?? 1 > 0 else {
        self = .unavailable(status: status, retryAfter: nil)
        return
      }
      self = .granted(token, lifetime: lifetime.map { .seconds($0) } ?? Self.defaultLifetime)
    case 408, 429, 500...:
      self = .unavailable(status: status, retryAfter: retryAfter.flatMap { RetryAfter.duration($0, now: now) })
    default:
      let reason = code.flatMap { Self.knownErrors.contains($0) ? $0 : nil } ?? "TokenRefused"
      self = .refused(reason: reason, status: status)
    }
  }

  /// The error codes of RFC 6749 §5.2, and Google's for a disabled client.
  private static let knownErrors: Set = [
    "invalid_request", "invalid_client", "invalid_grant", "unauthorized_client", "unsupported_grant_type",
    "invalid_scope", "disabled_client",
  ]
}

extension TokenAnswer: Redacted {
  var description: String {
    switch self {
    case .granted: "granted"
    case .refused(let reason, let status): "refused: \(reason) (\(status))"
    case .unavailable(let status, _): "unavailable (\(status))"
    }
  }
}
