import AsyncHTTPClient
import FanfareCore
import NIOCore
import NIOHTTP1
import NIOPosix
import NIOSSL
import Synchronization

/// How a receiver answered one request.
enum HookAnswer: Sendable, Equatable {
  /// 2xx: the receiver has the events.
  case delivered
  /// 410: the receiver wants no more events.
  case gone
  /// Any other answer, or none. `problem` contains nothing of an answer but its status.
  case failed(problem: String, retryAfter: Duration?)
}

/// Posts signed requests to one receiver.
///
/// The name is resolved once a minute. Its address is checked, and connections are made to that address and no
/// other: a name server cannot show one address to the check and another to the connection. TLS verifies the name.
/// Redirects are not followed.
final class HookClient: Sendable {
  /// The address of a client's connections.
  private struct Endpoint {
    let address: String
    let client: HTTPClient
    let resolvedAt: ContinuousClock.Instant
  }

  /// The longest Retry-After that is believed.
  static let longestRetryAfter: Duration = .seconds(3600)
  private static let addressLifetime: Duration = .seconds(60)
  private static let connections = 8

  private let hook: HookConfiguration
  private let secrets: Mutex<WebhookSecrets>
  private let tls: TLSConfiguration
  private let endpoint = Mutex<Endpoint?>(nil)

  init(_ hook: HookConfiguration, secrets: WebhookSecrets) throws(HookConfiguration.UnusableTrustRoots) {
    self.hook = hook
    self.secrets = Mutex(secrets)
    var tls = TLSConfiguration.makeClientConfiguration()
    tls.minimumTLSVersion = .tlsv12
    if let roots = hook.trustRoots {
      do { tls.trustRoots = .certificates(try NIOSSLCertificate.fromPEMBytes(Array(roots.utf8))) } catch {
        throw HookConfiguration.UnusableTrustRoots()
      }
    }
    self.tls = tls
  }

  /// Signs later requests with these secrets. Returns false if they are in use already.
  func use(_ new: WebhookSecrets) -> Bool {
    secrets.withLock { secrets in
      guard secrets != new else { return false }
      secrets = new
      return true
    }
  }

  /// Posts a batch. The time is that of this attempt, as the specification wants it.
  func post(_ body: [UInt8], id: String, at now: UnixTime) async -> HookAnswer {
    let timestamp = now.milliseconds / 1000
    let signature = secrets.withLock { $0 }.signature(id: id, timestamp: timestamp, body: body)
    do {
      return try await withThrowingTaskGroup(of: HookAnswer.self) { group in
        group.addTask { [self] in
          let client = try await client()
          var request = HTTPClientRequest(url: hook.url.text)
          request.method = .POST
          request.headers.add(contentsOf: [
            "content-type": HookEvent.batchType, "user-agent": "fanfare", "webhook-id": id,
            "webhook-timestamp": "\(timestamp)", "webhook-signature": signature,
          ])
          request.body = .bytes(ByteBuffer(bytes: body))
          let response = try await client.execute(request, timeout: TimeAmount(hook.timeout))
          // Read only so that the connection can be used again; a longer body ends it.
          _ = try? await response.body.collect(upTo: 16 * 1024)
          return Self.answer(response)
        }
        // The client's own timeout begins after the name's resolution.
        group.addTask { [hook] in
          try await Task.sleep(for: hook.timeout)
          return .failed(problem: "the receiver did not answer in time", retryAfter: nil)
        }
        defer { group.cancelAll() }
        return try await group.next() ?? .failed(problem: "no request was made", retryAfter: nil)
      }
    } catch let error as Refused {
      return .failed(problem: error.problem, retryAfter: nil)
    } catch {
      return .failed(problem: "the receiver was not reached: \(error)", retryAfter: nil)
    }
  }

  /// Closes all connections. Requests that are under way fail.
  func close() async {
    let last = endpoint.withLock { endpoint in
      defer { endpoint = nil }
      return endpoint
    }
    // A failed shutdown leaves nothing to do.
    try? await last?.client.shutdown()
  }

  // MARK: - Answers

  private static func answer(_ response: HTTPClientResponse) -> HookAnswer {
    switch response.status.code {
    case 200..<300: .delivered
    case 410: .gone
    case 300..<400:
      .failed(
        problem: "the receiver answered \(response.status.code); redirects are not followed", retryAfter: nil)
    default:
      .failed(
        problem: "the receiver answered \(response.status.code)",
        retryAfter: response.headers.first(name: "retry-after").flatMap { Int64($0) }.flatMap { seconds in
          seconds < 0 ? nil : min(.seconds(seconds), longestRetryAfter)
        })
    }
  }

  // MARK: - Addresses

  /// The receiver's address must not be used.
  private struct Refused: Error {
    let problem: String
  }

  private func client() async throws -> HTTPClient {
    if let known = endpoint.withLock({ $0 }), .now - known.resolvedAt < Self.addressLifetime { return known.client }
    let address = try await resolve()
    guard hook.allowsPrivate || PublicAddress.isPublic(address) else {
      throw Refused(problem: "the receiver's address is not public; hook.\(hook.name).allowPrivate permits it")
    }
    let (client, old) = endpoint.withLock { endpoint in
      let kept = endpoint?.address == address ? endpoint?.client : nil
      let client = kept ?? makeClient(to: address)
      let old = kept == nil ? endpoint?.client : nil
      endpoint = Endpoint(address: address, client: client, resolvedAt: .now)
      return (client, old)
    }
    // Its requests have ended or fail, and are repeated; a failed shutdown leaves nothing to do.
    try? await old?.shutdown()
    return client
  }

  private func resolve() async throws -> String {
    let host = hook.url.host
    let addresses = try await NIOThreadPool.singleton.runIfActive {
      try SocketAddress.makeAddressResolvingHost(host, port: 443)
    }
    guard let address = addresses.ipAddress else { throw Refused(problem: "the receiver's name has no address") }
    return address
  }

  private func makeClient(to address: String) -> HTTPClient {
    var configuration = HTTPClient.Configuration(
      tlsConfiguration: tls, redirectConfiguration: .disallow, timeout: .init(connect: .seconds(5)))
    configuration.httpVersion = .http1Only
    configuration.dnsOverride = [hook.url.host: address]
    configuration.connectionPool.concurrentHTTP1ConnectionsPerHostSoftLimit = Self.connections
    configuration.connectionPool.retryConnectionEstablishment = false
    return HTTPClient(eventLoopGroupProvider: .singleton, configuration: configuration)
  }
}
