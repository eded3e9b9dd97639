package import FanfareCore
import HTTP2Client
package import Logging
package import NIOCore
import NIOPosix
import Synchronization

/// Sends to Apple's devices: HTTP/2, a provider token, one request per push.
package final class APNsSender: PushSender {
  package let platform = Platform.apns

  private let configuration: APNsConfiguration
  private let credential: APNsCredential
  private let pool: HTTP2ConnectionPool
  private let renewal = Mutex(ConnectionRenewal())
  private let complaints = Complaints()
  /// The generation of the token whose end the gauge shows.
  private let recordedToken = Mutex(0)
  private let gauges: SenderGauges
  /// Told of once, not for every push.
  private let strangeAnswers = OncePerToken()
  private let malformedRequests = OncePerToken()
  private let tooManyTokens = OncePerToken()
  private let clock: any WallClock
  private let eventLoop: any EventLoop
  private let logger: Logger

  /// A sender that does not work before `run()`, and then looks after its credential and its gauges every
  /// `lookInterval`. Throws `PushConfigurationError`.
  package init(
    configuration: APNsConfiguration, clock: any WallClock = SystemWallClock(),
    eventLoopGroup: any EventLoopGroup = MultiThreadedEventLoopGroup.singleton, lookInterval: Duration = .seconds(5),
    logger: Logger
  ) throws {
    try configuration.validate()
    self.configuration = configuration
    self.clock = clock
    var logger = logger
    logger[metadataKey: LogKeys.hub] = "\(configuration.hub)"
    logger[metadataKey: LogKeys.platform] = "apns"
    self.logger = logger
    credential = try APNsCredential(configuration)
    gauges = SenderGauges(hub: configuration.hub, platform: .apns, interval: lookInterval)
    eventLoop = eventLoopGroup.next()
    var pool = HTTP2PoolConfiguration(
      host: configuration.host, port: configuration.port, tls: try .pushService(trustRoots: configuration.trustRoots))
    pool.maximumConnections = configuration.maximumConnections
    pool.maximumStreamsPerConnection = configuration.maximumStreamsPerConnection
    pool.maximumQueuedRequests = configuration.maximumQueuedPushes
    // Apple welcomes a PING after an hour of silence, and long-lived connections.
    pool.idlePingInterval = .seconds(3600)
    pool.keptResponseHeaders = ["retry-after"]
    pool.cancellationTimeout = configuration.requestTimeout
    self.pool = try HTTP2ConnectionPool(
      configuration: pool, eventLoopGroup: eventLoopGroup, logger: logger,
      observer: PoolWatch(complaints: complaints, logger: logger))
  }

  package var readinessProblem: String? { complaints.worst() }

  /// Signs with another key of the same team from now on, without a restart; with the key that is in use it changes
  /// nothing, and returns false. Throws `PushConfigurationError` when it can be none; then the old one stays.
  package func use(privateKey: String, keyID: String) throws(PushConfigurationError) -> Bool {
    var configuration = configuration
    configuration.privateKey = privateKey
    configuration.keyID = keyID
    try configuration.validate()
    guard credential.use(try ProviderTokenSigner(configuration)) else { return false }
    // The first push with it renews the connections; no answer to an older one is a reason to do that once more.
    let now = clock.now()
    renewal.withLock { $0.renewed(now: now) }
    return true
  }

  package func render(_ send: SendRequest) throws(PushOutcome) -> RenderedPush {
    try APNsRenderer.render(send)
  }

  package func submit(_ pushes: [Push], completion: @escaping @Sendable ([PushResult]) -> Void) {
    let now = clock.now()
    let fields: APNsCredential.Fields
    do {
      fields = try credential.fields(now: now)
    } catch {
      complain(.credential, "cannot sign a provider token", reason: "SigningFailed")
      let outcome = PushOutcome(.configurationError, reason: "SigningFailed")
      return report(pushes.map { PushResult(ticket: $0.ticket, outcome: outcome) }, to: completion)
    }
    record(fields)
    var writer = APNsRequestWriter(fields: fields, now: now, timeout: configuration.requestTimeout)
    var requests: [HTTP2Request] = []
    requests.reserveCapacity(pushes.count)
    var refused: [PushResult] = []
    for push in pushes {
      if push.expiresAt <= now {
        refused.append(PushResult(ticket: push.ticket, outcome: .expired))
      } else if DeviceHandle.problem(with: push.handle, platform: .apns) != nil {
        // In a path, anything but hexadecimal digits could end the whole connection.
        refused.append(PushResult(ticket: push.ticket, outcome: PushOutcome(.deviceGone, reason: "BadDeviceToken")))
      } else {
        requests.append(writer.request(for: push))
      }
    }
    report(refused, to: completion)
    let epoch = renewal.withLock { $0.epoch }
    pool.submit(requests, generation: fields.connectionGeneration) { [self] completions in
      completion(results(of: completions, sentWith: fields, epoch: epoch))
    }
  }

  package func run() async throws {
    await withTaskGroup(of: Void.self) { group in
      group.addTask { [self] in
        await gauges.watch {
          gauges.record(pool)
          // Without a push, too, the token in use is never one that has ended.
          do { record(try credential.fields(now: clock.now())) } catch {
            complain(.credential, "cannot sign a provider token", reason: "SigningFailed")
          }
        }
      }
      await pool.run()
      group.cancelAll()
    }
  }

  private func record(_ fields: APNsCredential.Fields) {
    let isNewToken = recordedToken.withLock { recorded in
      defer { recorded = fields.generation }
      return recorded != fields.generation
    }
    if isNewToken { gauges.record(credentialExpiresAt: fields.expiresAt) }
  }

  private func results(of completions: [HTTP2Completion], sentWith fields: APNsCredential.Fields, epoch: Int)
    -> [PushResult]
  {
    let now = clock.now()
    var notable: Set<APNsReason> = []
    var (isAccepted, strangeStatus): (Bool, Int?) = (false, nil)
    let results = completions.map { completion -> PushResult in
      switch completion.result {
      case .failure(let error): return PushResult(ticket: completion.ticket, outcome: PushOutcome(error))
      case .success(let response):
        let answer = APNsAnswer(
          status: response.status, body: response.body, retryAfter: response.headers["retry-after"], now: now)
        switch answer.outcome.verdict {
        case .accepted: isAccepted = true
        case .deviceGone: break
        default:
          if let reason = answer.reason {
            notable.insert(reason)
          } else {
            strangeStatus = response.status
          }
        }
        return PushResult(ticket: completion.ticket, outcome: answer.outcome)
      }
    }
    if isAccepted { complaints.clear(.answer, .credential, .connection) }
    if let strangeStatus, strangeAnswers.isNews(generation: fields.generation) {
      logger.warning("answer of unknown meaning", metadata: [LogKeys.status: "\(strangeStatus)"])
    }
    if !notable.isEmpty { act(on: notable, sentWith: fields, epoch: epoch, now: now) }
    return results
  }

  /// Does what answers ask for beyond their own pushes: once for all the answers of a batch.
  private func act(on reasons: Set<APNsReason>, sentWith fields: APNsCredential.Fields, epoch: Int, now: UnixTime) {
    for reason in reasons {
      switch reason {
      case .expiredProviderToken:
        do {
          if try credential.expired(fields, now: now) {
            record(try credential.fields(now: now))
          } else {
            complain(
              .credential, "APNs calls a new provider token expired: is the clock right?", reason: reason.rawValue)
          }
        } catch {
          complain(.credential, "cannot sign a provider token", reason: "SigningFailed")
        }
      case .tooManyProviderTokenUpdates:
        credential.updatedTooOften(generation: fields.generation, now: now)
        if tooManyTokens.isNews(generation: fields.generation) {
          logger.warning("push service wants fewer provider tokens", metadata: [LogKeys.reason: "\(reason.rawValue)"])
        }
      case _ where reason.verdict == .configurationError:
        complain(.answer, "APNs answers \(reason.rawValue)", reason: reason.rawValue)
      case _ where reason.verdict == .malformed:
        if malformedRequests.isNews(generation: fields.generation) {
          logger.error("push service finds a request malformed", metadata: [LogKeys.reason: "\(reason.rawValue)"])
        }
      default: break
      }
    }
    // A connection stays unusable after its token has expired, and is bound to the key of its first push.
    let wantsConnections = !reasons.isDisjoint(with: [
      .expiredProviderToken, .unrelatedKeyIDInToken, .idleTimeout, .shutdown,
    ])
    guard wantsConnections, renewal.withLock({ $0.isDue(epoch: epoch, now: now) }) else { return }
    if reasons.contains(.expiredProviderToken) {
      // What waits was made with the token that has expired, and would spoil the new connections: the next push leaves
      // it behind.
      credential.leaveConnections(of: fields)
    } else {
      pool.renewConnections()
    }
  }

  private func complain(_ subject: Complaints.Subject, _ text: String, reason: String) {
    if complaints.set(subject, text) {
      logger.error("push service cannot be used", metadata: [LogKeys.reason: "\(reason)"])
    }
  }

  /// Reports what no request was made for; never from inside `submit`, whose caller may hold a lock.
  private func report(_ results: [PushResult], to completion: @escaping @Sendable ([PushResult]) -> Void) {
    guard !results.isEmpty else { return }
    eventLoop.execute { completion(results) }
  }
}
