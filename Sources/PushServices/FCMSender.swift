import AsyncHTTPClient
package import FanfareCore
import HTTP2Client
package import Logging
package import NIOCore
import NIOPosix
import NIOSSL
import Synchronization

/// Sends through Firebase Cloud Messaging: HTTP/2, an access token of a service account, one request per push.
package final class FCMSender: PushSender {
  package let platform = Platform.fcm

  private let configuration: FCMConfiguration
  /// Whom tokens are fetched for.
  private let account: Mutex<ServiceAccountKey>
  private let tls: TLSConfiguration
  private let keeper: AccessTokenKeeper
  private let pool: HTTP2ConnectionPool
  private let path: String
  private let authority: String
  /// The fields that requests have in common under the token of one generation.
  private let shared = Mutex<(generation: Int, headers: HTTP2Headers)>((0, HTTP2Headers()))
  private let proven = ProvenPayloads()
  private let complaints = Complaints()
  private let thirdPartyRefusals = OncePerToken()
  private let strangeAnswers = OncePerToken()
  private let gauges: SenderGauges
  private let clock: any WallClock
  private let eventLoop: any EventLoop
  private let logger: Logger

  /// A sender that does not work before `run()`, and then looks after its credential and its gauges every
  /// `lookInterval`. Throws `PushConfigurationError`.
  package init(
    configuration: FCMConfiguration, clock: any WallClock = SystemWallClock(),
    eventLoopGroup: any EventLoopGroup = MultiThreadedEventLoopGroup.singleton, lookInterval: Duration = .seconds(5),
    logger: Logger
  ) throws {
    try configuration.validate()
    self.configuration = configuration
    account = Mutex(configuration.serviceAccount)
    self.clock = clock
    eventLoop = eventLoopGroup.next()
    var logger = logger
    logger[metadataKey: LogKeys.hub] = "\(configuration.hub)"
    logger[metadataKey: LogKeys.platform] = "fcm"
    self.logger = logger
    path = "/v1/projects/\(configuration.serviceAccount.projectID)/messages:send"
    authority = configuration.port == 443 ? configuration.host : "\(configuration.host):\(configuration.port)"
    tls = try .pushService(trustRoots: configuration.trustRoots)
    keeper = AccessTokenKeeper(maximumWaitingPushes: configuration.maximumQueuedPushes, clock: clock)
    gauges = SenderGauges(hub: configuration.hub, platform: .fcm, interval: lookInterval)
    var pool = HTTP2PoolConfiguration(host: configuration.host, port: configuration.port, tls: tls)
    pool.maximumConnections = configuration.maximumConnections
    pool.maximumStreamsPerConnection = configuration.maximumStreamsPerConnection
    pool.maximumQueuedRequests = configuration.maximumQueuedPushes
    // Google counts PINGs without requests as abuse, closes what is idle for four minutes, and everything after an
    // hour.
    pool.idlePingInterval = nil
    pool.minimumConnections = 0
    pool.maximumConnectionAge = .seconds(59 * 60)
    pool.keptResponseHeaders = ["retry-after"]
    pool.cancellationTimeout = configuration.requestTimeout
    self.pool = try HTTP2ConnectionPool(
      configuration: pool, eventLoopGroup: eventLoopGroup, logger: logger,
      observer: PoolWatch(complaints: complaints, logger: logger))
  }

  package var readinessProblem: String? { complaints.worst() }

  /// Fetches tokens with another key of the same project from now on, without a restart; with the key that is in use it
  /// changes nothing, and returns false. Throws when it belongs to another project; then the old one stays.
  package func use(_ account: ServiceAccountKey) throws(PushConfigurationError) -> Bool {
    guard account.projectID == configuration.serviceAccount.projectID else {
      throw PushConfigurationError(
        field: "serviceAccount.project_id", problem: "must stay what it was until the next start")
    }
    let isOther = self.account.withLock { current in
      defer { current = account }
      return current.keyID != account.keyID || current.clientEmail != account.clientEmail
    }
    if isOther { keeper.credentialReplaced() }
    return isOther
  }

  package func render(_ send: SendRequest) throws(PushOutcome) -> RenderedPush {
    try FCMRenderer.render(send)
  }

  package func submit(_ pushes: [Push], completion: @escaping @Sendable ([PushResult]) -> Void) {
    guard !pushes.isEmpty else { return }
    let deadline = ContinuousClock.now + configuration.requestTimeout
    keeper.withToken(pushes: pushes.count) { [self] result in
      switch result {
      case .success(let token): send(pushes, token: token, deadline: deadline, completion: completion)
      case .failure(let outcome): report(pushes.map { PushResult(ticket: $0.ticket, outcome: outcome) }, to: completion)
      }
    }
  }

  package func run() async throws {
    // One more connection than is needed: one that was given up may still be closing.
    await HTTPClient.withPushService(tls: tls, maximumConnectionsPerHost: 2) { await run(fetchingWith: $0) }
  }

  private func run(fetchingWith client: HTTPClient) async {
    await withTaskGroup(of: Void.self) { group in
      group.addTask { [gauges, keeper, pool] in
        await gauges.watch {
          gauges.record(pool)
          keeper.prepare()
        }
      }
      group.addTask { [self] in
        await keeper.run {
          let account = account.withLock { $0 }
          let tokens = TokenClient(
            client: client, url: configuration.tokenEndpoint ?? account.tokenURI,
            timeout: min(configuration.tokenTimeout, configuration.requestTimeout), clock: clock, logger: logger)
          do {
            let assertion = try await ServiceAccountAssertion(account: account, now: clock.now()).signed(by: account)
            return await tokens.post([("grant_type", ServiceAccountAssertion.grantType), ("assertion", assertion)])
          } catch {
            return .refused(reason: "SigningFailed", status: 0)
          }
        } observe: { answer, expiresAt in
          complaints.observe(answer, expiresAt: expiresAt, gauges: gauges, logger: logger)
        }
      }
      await pool.run()
      group.cancelAll()
    }
  }

  private func send(
    _ pushes: [Push], token: AccessToken, deadline: ContinuousClock.Instant,
    completion: @escaping @Sendable ([PushResult]) -> Void
  ) {
    let now = clock.now()
    // What waited for the token to the last moment is the pool's to report.
    let timeout = max(deadline - .now, .milliseconds(1))
    let writer = FCMRequestWriter(shared: sharedFields(for: token), now: now, timeout: timeout)
    var requests: [HTTP2Request] = []
    requests.reserveCapacity(pushes.count)
    var refused: [PushResult] = []
    for (index, push) in pushes.enumerated() {
      guard push.expiresAt > now else {
        refused.append(PushResult(ticket: push.ticket, outcome: .expired))
        continue
      }
      requests.append(writer.request(for: push, ticket: UInt64(index)))
    }
    report(refused, to: completion)
    pool.submit(requests) { [self] completions in
      completion(results(of: completions, pushes: pushes, token: token.generation))
    }
  }

  /// Every completion's ticket is the index of its push.
  private func results(of completions: [HTTP2Completion], pushes: [Push], token: Int) -> [PushResult] {
    let now = clock.now()
    var isAccepted = false
    var lastProven: [UInt8]?
    var refusal: PushOutcome.Verdict?
    var complaint: String?
    let results = completions.map { completion -> PushResult in
      let push = pushes[Int(completion.ticket)]
      switch completion.result {
      case .failure(let error): return PushResult(ticket: push.ticket, outcome: PushOutcome(error))
      case .success(let response):
        var outcome = FCMAnswer.outcome(
          status: response.status, body: response.body, retryAfter: response.headers["retry-after"], now: now,
          isPayloadProven: { proven.contains(push.rendering) })
        switch outcome.verdict {
        case .accepted:
          // Single sends have payloads of their own, few of which are ever seen again. Pushes of one broadcast share
          // theirs, which is then known to be the same without a look at its bytes.
          let isWorthKnowing = push.isBulk || !isAccepted
          isAccepted = true
          if isWorthKnowing, lastProven != push.rendering.body {
            lastProven = push.rendering.body
            proven.insert(push.rendering)
          }
        case .reauthenticate:
          let verdict = refusal ?? keeper.refused(generation: token, reason: outcome.reason)
          refusal = verdict
          outcome = PushOutcome(verdict, reason: outcome.reason, status: outcome.status)
          if verdict == .configurationError { complaint = outcome.reason }
        case .configurationError: complaint = outcome.reason
        case .rejected where outcome.reason == FCMAnswer.thirdPartyRefusal:
          if thirdPartyRefusals.isNews(generation: token) {
            logger.error(
              "Firebase cannot log in to the push service behind a device",
              metadata: [LogKeys.reason: "\(outcome.reason)"])
          }
        default:
          if outcome.reason == "UnknownReason", strangeAnswers.isNews(generation: token) {
            logger.warning("answer of unknown meaning", metadata: [LogKeys.status: "\(response.status)"])
          }
        }
        return PushResult(ticket: push.ticket, outcome: outcome)
      }
    }
    if isAccepted {
      keeper.worked(generation: token)
      complaints.clear(.answer, .connection)
    }
    if let complaint, complaints.set(.answer, "FCM answers \(complaint)") {
      logger.error("push service cannot be used", metadata: [LogKeys.reason: "\(complaint)"])
    }
    return results
  }

  private func sharedFields(for token: AccessToken) -> HTTP2Headers {
    shared.withLock { shared in
      if shared.generation == token.generation { return shared.headers }
      var headers = HTTP2Headers()
      headers.append(":method", "POST")
      headers.append(":scheme", "https")
      headers.append(":authority", authority)
      headers.append(":path", path)
      headers.append("authorization", "Bearer " + token.value)
      headers.append("content-type", "application/json")
      if token.generation > shared.generation { shared = (token.generation, headers) }
      return headers
    }
  }

  /// Reports what no request was made for; never from inside `submit`, whose caller may hold a lock.
  private func report(_ results: [PushResult], to completion: @escaping @Sendable ([PushResult]) -> Void) {
    guard !results.isEmpty else { return }
    eventLoop.execute { completion(results) }
  }
}
