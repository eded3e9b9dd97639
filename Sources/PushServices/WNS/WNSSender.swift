import AsyncHTTPClient
package import FanfareCore
import Logging
import NIOCore
import NIOHTTP1
import NIOSSL
import Synchronization

/// Sends through WNS: HTTP/1.1 with kept-alive connections, an OAuth 2 access token, one request per push to the
/// device's channel.
package final class WNSSender: PushSender {
  package let platform = Platform.wns

  /// The most bytes of an answer's body, which is empty or a short text.
  private static let maximumAnswerBytes = 16 * 1024
  /// The most attempts of one push, while its host answers.
  private static let maximumAttempts = 3

  private struct Guarded {
    var queue: WNSQueue
    var client: HTTPClient?
    var finished: CheckedContinuation<Void, Never>?
  }

  private let configuration: WNSConfiguration
  /// The app that tokens are fetched for.
  private let flow: Mutex<WNSConfiguration.Flow>
  private let writer: WNSRequestWriter
  private let tls: TLSConfiguration
  private let keeper: AccessTokenKeeper
  private let guarded: Mutex<Guarded>
  private let context: SenderContext
  private let refusals = RefusalFilter()
  private let forbiddenChannels = OncePerToken()
  private let malformedRequests = OncePerToken()
  private let unreachableHosts = OncePerToken()
  private let unreachableService = OncePerToken()

  /// Makes a sender that starts to work in `run()`. Throws `PushConfigurationError`.
  package init(_ configuration: WNSConfiguration, _ resources: SenderResources) throws {
    try configuration.validate()
    self.configuration = configuration
    flow = Mutex(configuration.flow)
    writer = WNSRequestWriter(connectTo: configuration.connectTo)
    context = SenderContext(hub: configuration.hub, platform: platform, resources)
    tls = try .pushService(trustRoots: configuration.trustRoots)
    keeper = AccessTokenKeeper(maximumWaitingPushes: configuration.maximumQueuedPushes, clock: resources.clock)
    guarded = Mutex(
      Guarded(
        queue: WNSQueue(
          maximumInFlight: configuration.maximumConnections, maximumWaiting: configuration.maximumQueuedPushes)))
  }

  package var readinessProblem: String? { context.problems.worst() }

  /// Fetches tokens with another secret of the same app from now on. Returns false if it is the secret in use.
  ///
  /// Throws if the secret is invalid; then the old one stays in use.
  package func use(secret: String) throws(PushConfigurationError) -> Bool {
    var configuration = configuration
    configuration.flow = configuration.flow.with(secret: secret)
    try configuration.validate()
    let replacement = configuration.flow
    let isOther = flow.withLock { current in
      defer { current = replacement }
      return current.secret != replacement.secret
    }
    if isOther {
      refusals.reset()
      keeper.credentialReplaced()
    }
    return isOther
  }

  package func render(_ send: SendRequest) throws(PushOutcome) -> RenderedPush {
    try WNSRenderer.render(send)
  }

  package func submit(_ pushes: [Push], completion: @escaping @Sendable ([PushResult]) -> Void) {
    guard !pushes.isEmpty else { return }
    let deadline = NIODeadline.now() + TimeAmount(configuration.requestTimeout)
    let batch = WNSBatch(eventLoop: context.eventLoop, completion: completion)
    keeper.withToken(pushes: pushes.count) { [self] result in
      switch result {
      case .success(let token): enqueue(pushes, token: token, deadline: deadline, batch: batch)
      case .failure(let outcome): batch.report(pushes.map { PushResult(ticket: $0.ticket, outcome: outcome) })
      }
    }
  }

  package func run() async throws {
    await HTTPClient.withPushService(tls: tls, maximumConnectionsPerHost: configuration.maximumConnections) {
      await run(with: $0)
    }
  }

  private func run(with client: HTTPClient) async {
    guarded.withLock { $0.client = client }
    let tokens = TokenClient(
      client: client, url: WNSTokenRequest(configuration).url,
      timeout: min(configuration.tokenTimeout, configuration.requestTimeout),
      clock: context.clock, logger: context.logger)
    await withTaskGroup(of: Void.self) { group in
      group.addTask { [self] in
        await context.gauges.update {
          context.gauges.record(requests: guarded.withLock { $0.queue.inFlight })
          keeper.prepare()
        }
      }
      await keeper.run {
        var configuration = configuration
        configuration.flow = flow.withLock { $0 }
        return await tokens.post(WNSTokenRequest(configuration).form)
      } observe: {
        context.note($0, expiresAt: $1)
      }
      group.cancelAll()
    }
    let waiting = guarded.withLock { $0.queue.close() }
    for item in waiting { item.batch.report([PushResult(ticket: item.push.ticket, outcome: .closed)]) }
    await inFlightEnded()
  }

  /// Waits for the requests in flight, at most until their deadlines.
  private func inFlightEnded() async {
    await withCheckedContinuation { continuation in
      let isFinished = guarded.withLock { guarded in
        if !guarded.queue.isFinished { guarded.finished = continuation }
        return guarded.queue.isFinished
      }
      if isFinished { continuation.resume() }
    }
  }

  private func enqueue(_ pushes: [Push], token: AccessToken, deadline: NIODeadline, batch: WNSBatch) {
    var refused: [PushResult] = []
    var items: [WNSQueue.Item] = []
    items.reserveCapacity(pushes.count)
    for push in pushes {
      if let channel = ChannelURI(push.handle) {
        items.append(WNSQueue.Item(push: push, channel: channel, token: token, deadline: deadline, batch: batch))
      } else {
        refused.append(PushResult(ticket: push.ticket, outcome: .badChannel))
      }
    }
    let (excess, isClosed) = guarded.withLock { ($0.queue.append(items), $0.queue.isClosed) }
    refused += excess.map { PushResult(ticket: $0.push.ticket, outcome: isClosed ? .closed : .queueFull) }
    batch.report(refused)
    sendNext()
  }

  /// Sends as many items as the queue allows.
  private func sendNext() {
    while true {
      let (item, client) = guarded.withLock { guarded in
        (guarded.client == nil ? nil : guarded.queue.take(), guarded.client)
      }
      guard let item, let client else { return }
      send(item, client: client)
    }
  }

  private func send(_ item: WNSQueue.Item, client: HTTPClient, attempt: Int = 1) {
    let now = context.clock.now()
    guard item.push.expiresAt > now else { return end(item, .expired) }
    guard item.deadline > .now() else { return end(item, .notSent) }
    guard let request = writer.request(for: item.push, channel: item.channel, token: item.token.value, now: now) else {
      return end(item, .badChannel)
    }
    let exchange = WNSExchange(request, maximumAnswerBytes: Self.maximumAnswerBytes)
    client.execute(request: request, delegate: exchange, deadline: item.deadline).futureResult
      .whenComplete { [self] result in
        switch result {
        case .failure(let error):
          if attempt < Self.maximumAttempts, isConnectionFailure(error, wasSent: exchange.wasSent, item) {
            send(item, client: client, attempt: attempt + 1)
          } else {
            end(item, outcome(of: error, wasSent: exchange.wasSent, item), answered: false)
          }
        case .success(let response):
          end(item, outcome(of: response, token: item.token.generation), answered: true)
        }
        sendNext()
      }
  }

  private func end(_ item: WNSQueue.Item, _ outcome: PushOutcome, answered: Bool? = nil) {
    item.batch.report([PushResult(ticket: item.push.ticket, outcome: outcome)])
    let finished = guarded.withLock { guarded in
      guarded.queue.ended(item.channel.host, answered: answered, now: .now())
      guard guarded.queue.isFinished else { return nil as CheckedContinuation<Void, Never>? }
      defer { guarded.finished = nil }
      return guarded.finished
    }
    finished?.resume()
  }

  /// Whether a push was not sent because one connection failed, while its host still answers on others: if a connection
  /// cannot be made, the client fails every request that waits for the host.
  private func isConnectionFailure(_ error: any Error, wasSent: Bool, _ item: WNSQueue.Item) -> Bool {
    guard !wasSent, error as? HTTPClientError != .deadlineExceeded else { return false }
    return guarded.withLock { $0.queue.answers(item.channel.host, now: .now()) }
  }

  private func outcome(of error: any Error, wasSent: Bool, _ item: WNSQueue.Item) -> PushOutcome {
    let outcome = PushOutcome(wnsError: error, wasSent: wasSent)
    guard outcome == .notSent else { return outcome }
    let host = item.channel.host
    let isHostAlone = guarded.withLock { $0.queue.isAtFault(host, now: .now()) }
    if !isHostAlone { context.problems.note(.connection, "cannot connect to WNS") }
    if (isHostAlone ? unreachableHosts : unreachableService).isFirst(generation: item.token.generation) {
      context.logger.warning(
        "Push service unreachable", metadata: [LogKeys.host: "\(host)", LogKeys.error: "\(error)"])
    }
    return isHostAlone ? .hostUnreachable : outcome
  }

  private func outcome(of response: HTTPClient.Response, token: Int) -> PushOutcome {
    context.problems.clear(.connection)
    let status = Int(response.status.code)
    var fields = WNSAnswer.Fields()
    fields.status =
      response.headers.first(name: "x-wns-status") ?? response.headers.first(name: "x-wns-notificationstatus")
    fields.retryAfter = response.headers.first(name: "retry-after")
    if status == 410 {
      fields.description = response.headers.first(name: "x-wns-error-description") ?? ""
      if let body = response.body {
        fields.description += " " + String(decoding: body.readableBytesView, as: UTF8.self)
      }
    }
    let now = context.clock.now()
    let appWorks = status == 403 && keeper.hasWorked(generation: token)
    var outcome = WNSAnswer.outcome(status: status, fields: fields, appWorks: appWorks, now: now)
    switch outcome.verdict {
    case .accepted:
      refusals.accepted(now: now)
      keeper.worked(generation: token)
      context.problems.clear(.answer)
    case .reauthenticate:
      let verdict = keeper.refused(generation: token, reason: outcome.reason)
      outcome = PushOutcome(verdict, reason: outcome.reason, status: status)
    case .malformed:
      if malformedRequests.isFirst(generation: token) {
        context.logger.error("Push service rejected a request as malformed", metadata: [LogKeys.status: "\(status)"])
      }
    default:
      if status == 403, !appWorks, forbiddenChannels.isFirst(generation: token) {
        context.logger.error(
          "WNS refused a channel before it accepted any push", metadata: [LogKeys.reason: "\(outcome.reason)"])
      }
    }
    if outcome.verdict == .configurationError, refusals.refused(now: now) {
      context.note(.answer, "WNS answers \(outcome.reason)", reason: outcome.reason)
    }
    return outcome
  }
}
