import AsyncHTTPClient
package import FanfareCore
import HTTP2
import Logging
import NIOCore
import NIOSSL
import Synchronization

/// Sends through Firebase Cloud Messaging: HTTP/2, an access token of a service account, one request per push.
package final class FCMSender: PushSender {
  package let platform = Platform.fcm

  private let configuration: FCMConfiguration
  /// The account that tokens are fetched for.
  private let account: Mutex<ServiceAccountKey>
  private let tls: TLSConfiguration
  private let keeper: AccessTokenKeeper
  private let pool: HTTP2ConnectionPool
  /// The header fields that all requests share under the token of this generation.
  private let shared = Mutex<(generation: Int, headers: HTTP2Headers)>((0, HTTP2Headers()))
  private let proven = ProvenPayloads()
  private let context: SenderContext
  private let refusals = RefusalFilter()
  private let thirdPartyRefusals = OncePerToken()
  private let strangeAnswers = OncePerToken()

  /// Makes a sender that starts to work in `run()`. Throws `PushConfigurationError`.
  package init(_ configuration: FCMConfiguration, _ resources: SenderResources) throws {
    try configuration.validate()
    self.configuration = configuration
    account = Mutex(configuration.serviceAccount)
    context = SenderContext(hub: configuration.hub, platform: platform, resources)
    tls = try .pushService(trustRoots: configuration.trustRoots)
    keeper = AccessTokenKeeper(maximumWaitingPushes: configuration.maximumQueuedPushes, clock: resources.clock)
    var pool = configuration.poolConfiguration(tls: tls)
    // Google counts PINGs without requests as abuse, and closes connections that are idle for four minutes or one hour
    // old.
    pool.idlePingInterval = nil
    pool.minimumConnections = 0
    pool.maximumConnectionAge = .seconds(59 * 60)
    self.pool = try HTTP2ConnectionPool(
      configuration: pool, eventLoopGroup: resources.eventLoopGroup, logger: context.logger, observer: context)
  }

  package var readinessProblem: String? { context.problems.worst() }

  /// Fetches tokens with another key of the same project from now on. Returns false if it is the key in use.
  ///
  /// Throws if the key belongs to another project; then the old one stays in use.
  package func use(_ account: ServiceAccountKey) throws(PushConfigurationError) -> Bool {
    guard account.projectID == configuration.serviceAccount.projectID else {
      throw PushConfigurationError(field: "serviceAccount.project_id", problem: "must not change without a restart")
    }
    let isOther = self.account.withLock { current in
      defer { current = account }
      return !current.isSame(as: account)
    }
    if isOther {
      refusals.reset()
      keeper.credentialReplaced()
    }
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
      case .failure(let outcome): context.report(outcome, for: pushes, to: completion)
      }
    }
  }

  package func run() async throws {
    // One connection is enough; the second is for the time in which an abandoned one still closes.
    await HTTPClient.withPushService(tls: tls, maximumConnectionsPerHost: 2) { await run(fetchingWith: $0) }
  }

  private func run(fetchingWith client: HTTPClient) async {
    await withTaskGroup(of: Void.self) { group in
      group.addTask { [context, keeper, pool] in
        await context.gauges.update {
          context.gauges.record(pool)
          keeper.prepare()
        }
      }
      group.addTask { [self] in
        await keeper.run {
          let account = account.withLock { $0 }
          let tokens = TokenClient(
            client: client, url: configuration.tokenEndpoint ?? account.tokenURI,
            timeout: min(configuration.tokenTimeout, configuration.requestTimeout), clock: context.clock,
            logger: context.logger)
          do {
            let assertion = try await ServiceAccountAssertion(account: account, now: context.clock.now()).signed(
              by: account)
            return await tokens.post([("grant_type", ServiceAccountAssertion.grantType), ("assertion", assertion)])
          } catch {
            return .refused(reason: "SigningFailed", status: 0)
          }
        } observe: {
          context.note($0, expiresAt: $1)
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
    let now = context.clock.now()
    // The pool reports the pushes whose time ran out while they waited for the token.
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
    context.report(refused, to: completion)
    pool.submit(requests) { [self] completions in
      completion(results(of: completions, pushes: pushes, token: token.generation))
    }
  }

  /// The ticket of a completion is the index of its push.
  private func results(of completions: [HTTP2Completion], pushes: [Push], token: Int) -> [PushResult] {
    let now = context.clock.now()
    var isAccepted = false
    var lastProven: [UInt8]?
    var refusal: PushOutcome.Verdict?
    var problem: String?
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
          if !isAccepted { refusals.accepted(now: now) }
          // The payload of a single send is rarely seen again, so one per batch is enough. The pushes of a broadcast
          // share one payload, so the comparison is of one buffer with itself and costs nothing.
          let isWorthRemembering = push.isBroadcast || !isAccepted
          isAccepted = true
          if isWorthRemembering, lastProven != push.rendering.body {
            lastProven = push.rendering.body
            proven.insert(push.rendering)
          }
          if push.rendering.isDryRun { outcome = .dryRun }
        case .reauthenticate:
          let verdict = refusal ?? keeper.refused(generation: token, reason: outcome.reason)
          refusal = verdict
          outcome = PushOutcome(verdict, reason: outcome.reason, status: outcome.status)
          if verdict == .configurationError { problem = outcome.reason }
        case .configurationError:
          if refusals.refused(now: now) { problem = outcome.reason }
        case .rejected where outcome.reason == FCMAnswer.thirdPartyRefusal:
          if thirdPartyRefusals.isFirst(generation: token) {
            context.logger.error(
              "Firebase cannot authenticate to the push service behind a device",
              metadata: [LogKeys.reason: "\(outcome.reason)"])
          }
        default:
          if outcome.reason == "UnknownReason", strangeAnswers.isFirst(generation: token) {
            context.logger.warning(
              "Push service gave an unknown answer", metadata: [LogKeys.status: "\(response.status)"])
          }
        }
        return PushResult(ticket: push.ticket, outcome: outcome)
      }
    }
    if isAccepted {
      keeper.worked(generation: token)
      context.problems.clear(.answer, .connection)
    }
    if let problem { context.note(.answer, "FCM answers \(problem)", reason: problem) }
    return results
  }

  private func sharedFields(for token: AccessToken) -> HTTP2Headers {
    shared.withLock { shared in
      if shared.generation == token.generation { return shared.headers }
      var headers = HTTP2Headers()
      headers.append(":method", "POST")
      headers.append(":scheme", "https")
      headers.append(":authority", configuration.authority)
      headers.append(":path", "/v1/projects/\(configuration.serviceAccount.projectID)/messages:send")
      headers.append("authorization", "Bearer " + token.value)
      headers.append("content-type", "application/json")
      if token.generation > shared.generation { shared = (token.generation, headers) }
      return headers
    }
  }
}

/// The configuration of a sender to one Firebase project through FCM's HTTP v1 API.
package struct FCMConfiguration: Sendable {
  /// The hub that owns the app.
  package var hub: HubName
  /// The account that sends.
  package var serviceAccount: ServiceAccountKey

  /// The API's host.
  package var host = "fcm.googleapis.com"
  package var port = 443
  /// The URL (`https`) for access tokens, instead of the key file's `token_uri`, which stays the assertion's audience.
  package var tokenEndpoint: String?
  /// Root certificates in PEM for the API and the token endpoint, used instead of the system's.
  package var trustRoots: String?
  /// The most connections.
  package var maximumConnections = StreamLimits.fcm.connections
  /// The most streams per connection, even if FCM allows more.
  package var maximumStreamsPerConnection = StreamLimits.fcm.streams
  /// The most pushes that wait for an access token or a stream; further ones end as `.retryLater`.
  package var maximumQueuedPushes = 20_000
  /// The time for one push, waiting included; Google asks for at least 10 s.
  package var requestTimeout: Duration = .seconds(20)
  /// The time for one request for an access token, at most `requestTimeout`, because pushes wait for it.
  package var tokenTimeout: Duration = .seconds(10)

  package init(hub: HubName = .default, serviceAccount: ServiceAccountKey) {
    self.hub = hub
    self.serviceAccount = serviceAccount
  }

  /// Checks every field except the service account, which was checked when it was read.
  func validate() throws(PushConfigurationError) {
    try validateConnection()
    if let tokenEndpoint { try ConfigurationCheck.httpsURL(tokenEndpoint, field: "tokenEndpoint") }
    try ConfigurationCheck.positive(tokenTimeout, field: "tokenTimeout")
  }
}

extension FCMConfiguration: HTTP2SenderConfiguration, Redacted {
  package var description: String { "FCM \(host):\(port), hub \(hub), project \(serviceAccount.projectID)" }
}
