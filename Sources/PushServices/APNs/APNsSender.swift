package import FanfareCore
import HTTP2
import Logging
import NIOCore
import Synchronization

/// Sends to Apple devices through APNs: HTTP/2, a provider token, one request per push.
package final class APNsSender: PushSender {
  package let platform = Platform.apns

  private let configuration: APNsConfiguration
  private let credential: APNsCredential
  private let pool: HTTP2ConnectionPool
  private let renewal = Mutex(ConnectionRenewal())
  private let context: SenderContext
  private let refusals = RefusalFilter()
  /// For the gauge of the token's expiry.
  private let recordedToken = OncePerToken()
  private let strangeAnswers = OncePerToken()
  private let malformedRequests = OncePerToken()
  private let tooManyTokens = OncePerToken()

  /// Makes a sender that starts to work in `run()`. Throws `PushConfigurationError`.
  package init(_ configuration: APNsConfiguration, _ resources: SenderResources) throws {
    try configuration.validate()
    self.configuration = configuration
    credential = try APNsCredential(configuration)
    context = SenderContext(hub: configuration.hub, platform: platform, resources)
    var pool = configuration.poolConfiguration(tls: try .pushService(trustRoots: configuration.trustRoots))
    // Apple recommends long-lived connections, and a PING after an hour without traffic.
    pool.idlePingInterval = .seconds(3600)
    self.pool = try HTTP2ConnectionPool(
      configuration: pool, eventLoopGroup: resources.eventLoopGroup, logger: context.logger, observer: context)
  }

  package var readinessProblem: String? { context.problems.worst() }

  /// Signs with another key of the same team from now on. Returns false if it is the key in use.
  ///
  /// Throws `PushConfigurationError` if the key is invalid; then the old one stays in use.
  package func use(privateKey: String, keyID: String) throws(PushConfigurationError) -> Bool {
    var configuration = configuration
    configuration.privateKey = privateKey
    configuration.keyID = keyID
    try configuration.validate()
    guard credential.use(try ProviderTokenSigner(configuration)) else { return false }
    // The first push with the new key opens new connections, so answers to older pushes must not renew them again.
    let now = context.clock.now()
    renewal.withLock { $0.renewed(now: now) }
    refusals.reset()
    return true
  }

  package func render(_ send: SendRequest) throws(PushOutcome) -> RenderedPush {
    try APNsRenderer.render(send)
  }

  package func submit(_ pushes: [Push], completion: @escaping @Sendable ([PushResult]) -> Void) {
    let now = context.clock.now()
    let fields: APNsCredential.Fields
    do {
      fields = try credential.fields(now: now)
    } catch {
      noteSigningFailure()
      return context.report(PushOutcome(.configurationError, reason: "SigningFailed"), for: pushes, to: completion)
    }
    record(fields)
    var writer = APNsRequestWriter(fields: fields, now: now, timeout: configuration.requestTimeout)
    var requests: [HTTP2Request] = []
    requests.reserveCapacity(pushes.count)
    var refused: [PushResult] = []
    for push in pushes {
      if push.expiresAt <= now {
        refused.append(PushResult(ticket: push.ticket, outcome: .expired))
      } else if !APNs.isToken(push.handle) {
        // In `:path`, a character other than a hexadecimal digit could break the whole connection.
        refused.append(PushResult(ticket: push.ticket, outcome: PushOutcome(.deviceGone, reason: "BadDeviceToken")))
      } else {
        requests.append(writer.request(for: push))
      }
    }
    context.report(refused, to: completion)
    let epoch = renewal.withLock { $0.epoch }
    pool.submit(requests, generation: fields.connectionGeneration) { [self] completions in
      completion(results(of: completions, sentWith: fields, epoch: epoch))
    }
  }

  package func run() async throws {
    await withTaskGroup(of: Void.self) { group in
      group.addTask { [self] in
        await context.gauges.update {
          context.gauges.record(pool)
          // Renews the token even if no pushes are sent.
          do { record(try credential.fields(now: context.clock.now())) } catch { noteSigningFailure() }
        }
      }
      await pool.run()
      group.cancelAll()
    }
  }

  private func record(_ fields: APNsCredential.Fields) {
    guard recordedToken.isFirst(generation: fields.generation) else { return }
    context.gauges.record(credentialExpiresAt: fields.expiresAt)
  }

  private func results(of completions: [HTTP2Completion], sentWith fields: APNsCredential.Fields, epoch: Int)
    -> [PushResult]
  {
    let now = context.clock.now()
    var notable: Set<APNsReason> = []
    var (isAccepted, strangeStatus): (Bool, Int?) = (false, nil)
    let results = completions.map { completion -> PushResult in
      switch completion.result {
      case .failure(let error): return PushResult(ticket: completion.ticket, outcome: PushOutcome(error))
      case .success(let response):
        let answer = APNsAnswer(
          status: response.status, body: response.body, retryAfter: response.headers["retry-after"], now: now)
        switch answer.outcome.verdict {
        case .accepted:
          if !isAccepted { refusals.accepted(now: now) }
          isAccepted = true
        case .deviceGone: break
        case .reauthenticate, .configurationError:
          guard let reason = answer.reason else { break }
          // A token that may be replaced is replaced at once: if only this device is refused, that costs little.
          let isRenewed = reason == .expiredProviderToken && credential.mayReplaceToken(of: fields, now: now)
          if refusals.refused(now: now) || isRenewed { notable.insert(reason) }
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
    if isAccepted { context.problems.clear(.answer, .credential, .connection) }
    if let strangeStatus, strangeAnswers.isFirst(generation: fields.generation) {
      context.logger.warning("Push service gave an unknown answer", metadata: [LogKeys.status: "\(strangeStatus)"])
    }
    if !notable.isEmpty { act(on: notable, sentWith: fields, epoch: epoch, now: now) }
    return results
  }

  /// Handles the reasons that concern the token or the connections, once for all answers of a batch.
  private func act(on reasons: Set<APNsReason>, sentWith fields: APNsCredential.Fields, epoch: Int, now: UnixTime) {
    for reason in reasons {
      switch reason {
      case .expiredProviderToken:
        do {
          if try credential.expired(fields, now: now) {
            record(try credential.fields(now: now))
          } else {
            context.note(
              .credential, "APNs reports a new provider token as expired: check the clock of this machine",
              reason: reason.rawValue)
          }
        } catch {
          noteSigningFailure()
        }
      case .tooManyProviderTokenUpdates:
        credential.updatedTooOften(generation: fields.generation, now: now)
        if tooManyTokens.isFirst(generation: fields.generation) {
          context.logger.warning(
            "Provider token was replaced too often", metadata: [LogKeys.reason: "\(reason.rawValue)"])
        }
      case _ where reason.verdict == .configurationError:
        context.note(.answer, "APNs answers \(reason.rawValue)", reason: reason.rawValue)
      case _ where reason.verdict == .malformed:
        if malformedRequests.isFirst(generation: fields.generation) {
          context.logger.error(
            "Push service rejected a request as malformed", metadata: [LogKeys.reason: "\(reason.rawValue)"])
        }
      default: break
      }
    }
    // APNs ties a connection to the key of its first push, and refuses all pushes on it once its token has expired.
    let needsConnections = !reasons.isDisjoint(with: [
      .expiredProviderToken, .unrelatedKeyIDInToken, .idleTimeout, .shutdown,
    ])
    guard needsConnections, renewal.withLock({ $0.isDue(epoch: epoch, now: now) }) else { return }
    if reasons.contains(.expiredProviderToken) {
      // Waiting requests carry the expired token and would spoil the new connections. A new generation discards them.
      credential.replaceConnections(of: fields)
    } else {
      pool.renewConnections()
    }
  }

  private func noteSigningFailure() {
    context.note(.credential, "cannot sign a provider token", reason: "SigningFailed")
  }
}

/// The configuration of a sender to one app through APNs, with a provider token.
package struct APNsConfiguration: Sendable {
  /// The hub that owns the app.
  package var hub: HubName
  /// The key's id, 10 characters, from Apple's developer pages.
  package var keyID: String
  /// The team's id, 10 characters.
  package var teamID: String
  /// The content of the key file: PKCS #8 PEM with a P-256 key (`AuthKey_….p8`).
  package var privateKey: String
  /// The app's bundle id.
  package var topic: String

  /// The host: `api.push.apple.com`, or `api.sandbox.push.apple.com` for development builds.
  package var host = "api.push.apple.com"
  /// 443, or 2197 where a firewall requires it.
  package var port = 443
  /// Root certificates in PEM, used instead of the system's.
  package var trustRoots: String?
  /// The most connections.
  package var maximumConnections = StreamLimits.apns.connections
  /// The most streams per connection, even if Apple allows more.
  package var maximumStreamsPerConnection = StreamLimits.apns.streams
  /// The most pushes that wait for a stream; further ones end as `.retryLater`.
  package var maximumQueuedPushes = 20_000
  /// The time for one push, waiting included. A push without an answer by then ends as `.unknown`, or as not sent.
  package var requestTimeout: Duration = .seconds(20)

  package init(hub: HubName = .default, keyID: String, teamID: String, privateKey: String, topic: String) {
    self.hub = hub
    self.keyID = keyID
    self.teamID = teamID
    self.privateKey = privateKey
    self.topic = topic
  }

  /// Checks every field except the key, which the signer reads.
  func validate() throws(PushConfigurationError) {
    for (field, value) in [("keyID", keyID), ("teamID", teamID)] {
      guard value.utf8.count == 10, value.utf8.allSatisfy(\.isLetterOrDigit) else {
        throw PushConfigurationError(field: field, problem: "must be 10 letters and digits")
      }
    }
    try ConfigurationCheck.token(topic, field: "topic")
    try validateConnection()
  }
}

extension APNsConfiguration: HTTP2SenderConfiguration, Redacted {
  package var description: String { "APNs \(host):\(port), hub \(hub), topic \(topic)" }
}
