import FanfareCore
import HTTP2
import Logging
import Metrics
import NIOCore
import Synchronization

/// What every sender has besides its connections: log, clock, gauges, readiness problems and a loop to report on.
struct SenderContext: Sendable {
  let clock: any WallClock
  let logger: Logger
  let gauges: SenderGauges
  let problems = ReadinessProblems()
  let eventLoop: any EventLoop

  init(hub: HubName, platform: Platform, _ resources: SenderResources) {
    var logger = resources.logger
    logger[metadataKey: LogKeys.hub] = "\(hub)"
    logger[metadataKey: LogKeys.platform] = "\(platform)"
    self.logger = logger
    clock = resources.clock
    gauges = SenderGauges(hub: hub, platform: platform, interval: resources.checkInterval)
    eventLoop = resources.eventLoopGroup.next()
  }

  /// Reports pushes for which no request was made; never from inside `submit`, whose caller may hold a lock.
  func report(_ results: [PushResult], to completion: @escaping @Sendable ([PushResult]) -> Void) {
    guard !results.isEmpty else { return }
    eventLoop.execute { completion(results) }
  }

  /// Reports one outcome for every push, in the same way.
  func report(_ outcome: PushOutcome, for pushes: [Push], to completion: @escaping @Sendable ([PushResult]) -> Void) {
    report(pushes.map { PushResult(ticket: $0.ticket, outcome: outcome) }, to: completion)
  }

  /// Notes a problem that keeps the sender from working, and logs it when it is new.
  func note(_ subject: ReadinessProblems.Subject, _ text: String, reason: String) {
    if problems.note(subject, text) {
      logger.error("Push service cannot be used", metadata: [LogKeys.reason: "\(reason)"])
    }
  }

  /// Notes an answer of the token endpoint. While the old token is good, an unreachable endpoint is not a problem.
  func note(_ answer: TokenAnswer, expiresAt: UnixTime?) {
    switch answer {
    case .granted:
      problems.clear(.credential)
      if let expiresAt { gauges.record(credentialExpiresAt: expiresAt) }
    case .refused(let reason, let status):
      if problems.note(.credential, "the token endpoint answers \(reason)") {
        logger.error("Access token refused", metadata: [LogKeys.reason: "\(reason)", LogKeys.status: "\(status)"])
      }
    case .unavailable(let status, _):
      logger.warning("Access token unavailable", metadata: [LogKeys.status: "\(status)"])
      if expiresAt == nil { problems.note(.credential, "the token endpoint does not answer") }
    }
  }
}

extension SenderContext: HTTP2PoolObserver {
  func pool(_ host: String, didObserve event: HTTP2PoolEvent) {
    switch event {
    case .opened:
      gauges.opened.increment()
      problems.clear(.connection)
    case .failed(_, let error, _):
      gauges.failed.increment()
      if problems.note(.connection, "cannot connect to \(host): \(error.code.words)") {
        logger.warning("Push service unreachable", metadata: [LogKeys.host: "\(host)", LogKeys.error: "\(error)"])
      }
    case .goAway(_, let code, _, let debugData):
      gauges.goAways.increment()
      // APNs gives a reason, in the same JSON as in an answer. Other services send free text.
      let reason = APNsErrorBody(debugData).reason
      logger.info(
        "Push service sent GOAWAY",
        metadata: [LogKeys.host: "\(host)", LogKeys.error: "\(code)", LogKeys.reason: "\(reason?.rawValue ?? "")"])
    case .closed(_, let error): if error != nil { gauges.lost.increment() }
    case .resending(_, let count): gauges.resent.increment(by: count)
    case .streamLimitChanged: break
    }
  }
}

extension HTTP2ConnectionError.Code {
  /// For operators; the log has the cause too.
  fileprivate var words: String {
    switch self {
    case .connectFailed: "no TCP connection (refused, timed out, or an unknown name)"
    case .tlsFailed: "TLS failed (trust roots, the certificate's name or dates)"
    case .protocolNotNegotiated: "the server does not speak HTTP/2"
    case .handshakeTimeout: "TLS and HTTP/2 were not set up in time"
    case .protocolViolation: "the server violates HTTP/2"
    case .unresponsive: "it does not answer"
    case .closedByPeer: "the server closes the connection"
    case .internalFailure: "HTTP/2 cannot be set up, for want of memory"
    case .invalidConfiguration: "the settings of the connection are invalid"
    }
  }
}

/// The gauges of one sender, and the counters of its HTTP/2 connections.
struct SenderGauges: Sendable {
  private let connections: Gauge
  private let streams: Gauge
  private let streamLimit: Gauge
  private let waiting: Gauge
  private let credentialExpiry: Gauge
  let opened: Counter
  let failed: Counter
  let lost: Counter
  let goAways: Counter
  let resent: Counter
  private let interval: Duration

  init(hub: HubName, platform: Platform, interval: Duration) {
    self.interval = interval
    let dimensions = [("hub", hub.rawValue), ("platform", platform.name)]
    connections = Gauge(label: "fanfare_push_connections", dimensions: dimensions)
    streams = Gauge(label: "fanfare_push_streams", dimensions: dimensions)
    streamLimit = Gauge(label: "fanfare_push_stream_limit", dimensions: dimensions)
    waiting = Gauge(label: "fanfare_push_requests_waiting", dimensions: dimensions)
    func events(_ event: String) -> Counter {
      Counter(label: "fanfare_push_connection_events_total", dimensions: dimensions + [("event", event)])
    }
    (opened, failed, lost, goAways) = (events("opened"), events("failed"), events("lost"), events("goAway"))
    resent = Counter(label: "fanfare_push_requests_resent_total", dimensions: dimensions)
    credentialExpiry = Gauge(label: "fanfare_push_credential_expiry_timestamp_seconds", dimensions: dimensions)
  }

  func record(credentialExpiresAt moment: UnixTime) { credentialExpiry.record(moment.seconds) }

  /// Records requests in flight over connections that carry one each (HTTP/1.1).
  func record(requests: Int) {
    connections.record(requests)
    streams.record(requests)
  }

  func record(_ pool: HTTP2ConnectionPool) {
    let statistics = pool.statistics
    connections.record(statistics.connections + statistics.draining)
    streams.record(statistics.openStreams)
    streamLimit.record(statistics.streamLimit)
    waiting.record(statistics.queued)
  }

  /// Calls `update` now and after every interval, until the task is cancelled.
  func update(_ update: () -> Void) async {
    while true {
      update()
      do { try await Task.sleep(for: interval) } catch { break }
    }
  }
}

/// Limits a log line to one per generation of a token, so that neither a fault of every push fills the log nor a
/// fault of many days is logged only on the first.
final class OncePerToken: Sendable {
  private let last = Mutex<Int?>(nil)

  /// Whether this is the first call for this generation after another one.
  func isFirst(generation: Int) -> Bool {
    last.withLock { last in
      defer { last = generation }
      return last != generation
    }
  }
}
