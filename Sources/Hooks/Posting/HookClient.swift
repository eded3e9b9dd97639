import AsyncHTTPClient
import FanfareCore
import NIOCore
import NIOHTTP1
import NIOSSL
import Synchronization

/// How a receiver answered one request.
enum HookAnswer: Sendable, Equatable {
  /// 2xx: the receiver has the events.
  case delivered
  /// 410: the receiver wants no more events.
  case gone
  /// 400, 413 or 422: the receiver does not take this content. `isForGood`: 413, which repeating cannot change; the
  /// others are also answered by receivers with a fault, such as a wrong secret.
  case refused(problem: String, isForGood: Bool)
  /// Any other answer, or none. `problem` contains nothing of an answer but its status.
  case failed(problem: String, retryAfter: Duration?)
}

/// Posts signed requests to one receiver.
///
/// The name is resolved once a minute, and after a request without an answer. One of its addresses is chosen and
/// checked, and connections are made to that address and no other: a name server cannot show one address to the check
/// and another to the connection. It stays in use while the name has it and it answers. TLS verifies the name.
/// Redirects are not followed.
final class HookClient: Sendable {
  /// The address of a client's connections.
  private struct Endpoint {
    let address: String
    let client: HTTPClient
    var resolvedAt: ContinuousClock.Instant
    /// Whether a request had no answer.
    var hasFailed = false
  }

  /// The longest Retry-After that is believed.
  static let longestRetryAfter: Duration = .seconds(3600)
  private static let connections = 8

  private let hook: HookConfiguration
  private let secrets: Mutex<WebhookSecrets>
  private let tls: TLSConfiguration
  private let lookUp: HostLookUp
  private let addressLifetime: Duration
  private let endpoint = Mutex<Endpoint?>(nil)

  init(
    _ hook: HookConfiguration, secrets: WebhookSecrets, addressLifetime: Duration = .seconds(60),
    lookUp: @escaping HostLookUp.Function = { try IPAddress.addresses(of: $0) }
  ) throws(HookConfiguration.UnusableTrustRoots) {
    self.hook = hook
    self.addressLifetime = addressLifetime
    self.lookUp = HostLookUp(of: hook.url.host, lookUp)
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
          let endpoint = try await currentEndpoint()
          var request = HTTPClientRequest(url: hook.url.text)
          request.method = .POST
          request.headers.add(contentsOf: [
            "content-type": HookEvent.batchType, "user-agent": "fanfare", "webhook-id": id,
            "webhook-timestamp": "\(timestamp)", "webhook-signature": signature,
          ])
          request.body = .bytes(ByteBuffer(bytes: body))
          let response: HTTPClientResponse
          do {
            response = try await endpoint.client.execute(request, timeout: TimeAmount(hook.timeout))
          } catch {
            failed(endpoint)
            throw error
          }
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
    } catch is IPAddress.Unknown {
      return .failed(problem: "the receiver's name has no address, or no name server answers", retryAfter: nil)
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
    case 400, 413, 422:
      .refused(problem: "the receiver answered \(response.status.code)", isForGood: response.status.code == 413)
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

  private func currentEndpoint() async throws -> Endpoint {
    if let known = endpoint.withLock({ $0 }), !known.hasFailed, .now - known.resolvedAt < addressLifetime {
      return known
    }
    let addresses = try await lookUp.addresses().filter { hook.allowsPrivate || PublicAddress.isPublic($0) }
    guard let first = addresses.first else {
      throw Refused(problem: "the receiver's address is not public; hook.\(hook.name).allowPrivate permits it")
    }
    let (current, old) = endpoint.withLock { endpoint in
      let old = endpoint
      let address = old.flatMap { Self.choice(of: addresses, after: $0) } ?? first
      let kept = old.flatMap { $0.address == address ? $0.client : nil }
      let current = Endpoint(address: address, client: kept ?? makeClient(to: address), resolvedAt: .now)
      endpoint = current
      return (current, kept == nil ? old : nil)
    }
    // Its requests have ended or fail, and are repeated; a failed shutdown leaves nothing to do.
    try? await old?.client.shutdown()
    return current
  }

  /// Name servers give several addresses in changing order: the present one stays, unless it has failed; then the next
  /// one takes its turn. nil if the name does not have the present one any more.
  private static func choice(of addresses: [String], after present: Endpoint) -> String? {
    guard addresses.contains(present.address) else { return nil }
    guard present.hasFailed else { return present.address }
    return addresses.filter { $0 > present.address }.min() ?? addresses.min()
  }

  private func failed(_ used: Endpoint) {
    endpoint.withLock { if $0?.address == used.address { $0?.hasFailed = true } }
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
