import AsyncHTTPClient
package import CoreMetrics
package import FanfareCore
package import Logging
import NIOCore
import NIOHTTP1
import Synchronization

/// Sends spans to a collector in OpenTelemetry's protocol (OTLP over HTTP with JSON), in batches.
///
/// It is never in the way: spans for which the queue has no room are dropped and counted, and so is a batch that the
/// collector refuses, or does not take within `maximumAttempts`.
package final class SpanExporter: SpanSink {
  package struct Configuration: Sendable {
    /// The URL to which batches are posted.
    package var endpoint: String
    /// Header fields of each request; may be secret.
    package var headers: [(name: String, value: String)] = []
    /// The attributes of the process.
    package var resource: [(name: String, value: String)] = []
    /// The most spans of a request.
    package var batchSize = 512
    /// The most spans that wait.
    package var queueSize = 4096
    /// The time limit of a request.
    package var timeout = Duration.seconds(10)
    /// The longest time that a span waits for others.
    package var linger = Duration.seconds(1)
    /// The pause after the first failed attempt; doubles with each further one. A collector's `Retry-After` counts if
    /// it is longer.
    package var firstRetryDelay = Duration.seconds(1)
    package var maximumAttempts = 5

    package init(endpoint: String) { self.endpoint = endpoint }
  }

  /// The result of a request.
  private enum Answer {
    case taken
    /// The batch itself is refused.
    case refused(Int)
    /// The collector cannot take it now.
    case unavailable(String, retryAfter: Duration?)
  }

  /// The longest pause that a collector can ask for.
  private static let longestPause = Duration.seconds(30)

  private let configuration: Configuration
  private let logger: Logger
  private let queue = Mutex<[TraceSpan]>([])
  private let (wakeUps, waker) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
  private let exported: Counter
  private let dropped: [String: Counter]

  package init(
    _ configuration: Configuration, logger: Logger, metrics: any MetricsFactory = MetricsSystem.factory
  ) {
    (self.configuration, self.logger) = (configuration, logger)
    exported = Counter(label: "fanfare_spans_exported_total", dimensions: [], factory: metrics)
    dropped = Dictionary(
      uniqueKeysWithValues: ["queueFull", "refused", "unavailable"].map {
        ($0, Counter(label: "fanfare_spans_dropped_total", dimensions: [("reason", $0)], factory: metrics))
      })
  }

  package func record(_ spans: [TraceSpan]) {
    let (lost, isFull) = queue.withLock { queue in
      let room = max(0, configuration.queueSize - queue.count)
      queue += spans.prefix(room)
      return (spans.count - min(room, spans.count), queue.count >= configuration.batchSize)
    }
    if lost > 0 { drop(lost, "queueFull") }
    if isFull { waker.yield() }
  }

  /// Exports until the task is cancelled. Spans that have not been exported by then stay in the queue.
  package func run() async {
    await withClient { client in
      await withDiscardingTaskGroup { group in
        group.addTask { [self] in
          while !Task.isCancelled {
            // Cancelled: the loop ends.
            try? await Task.sleep(for: configuration.linger)
            waker.yield()
          }
        }
        for await _ in wakeUps {
          while !Task.isCancelled, let batch = takeBatch() {
            if await deliver(batch, attempts: configuration.maximumAttempts, by: client) { continue }
            queue.withLock { $0 = batch + $0 }
            break
          }
          if Task.isCancelled { break }
        }
        group.cancelAll()
      }
    }
  }

  /// Exports the spans in the queue, each batch with one attempt, within a time limit. Call it after `run`.
  package func drain(within limit: Duration) async {
    await withClient { client in
      await withTaskGroup { group in
        group.addTask { [self] in
          while !Task.isCancelled, let batch = takeBatch() { _ = await deliver(batch, attempts: 1, by: client) }
        }
        group.addTask {
          // Cancelled when the queue is empty.
          try? await Task.sleep(for: limit)
        }
        _ = await group.next()
        group.cancelAll()
      }
    }
  }

  private func takeBatch() -> [TraceSpan]? {
    queue.withLock { queue in
      guard !queue.isEmpty else { return nil }
      defer { queue.removeFirst(min(queue.count, configuration.batchSize)) }
      return Array(queue.prefix(configuration.batchSize))
    }
  }

  /// Posts a batch until it is taken, refused or given up. Returns false if the task was cancelled before that.
  private func deliver(_ batch: [TraceSpan], attempts: Int, by client: HTTPClient) async -> Bool {
    let body = OTLPDocument.bytes(of: batch, resource: configuration.resource)
    let backoff = Backoff(first: configuration.firstRetryDelay, limit: Self.longestPause)
    for attempt in 1...attempts {
      let answer = await post(body, by: client)
      switch answer {
      case .taken:
        exported.increment(by: batch.count)
        return true
      case .refused(let status):
        logger.warning("Collector refused spans", metadata: ["status": "\(status)"])
        drop(batch.count, "refused")
        return true
      case .unavailable(let reason, let retryAfter):
        if Task.isCancelled { return false }
        logger.warning("Spans could not be exported", metadata: ["error": "\(reason)"])
        guard attempt < attempts else { break }
        let pause = min(max(backoff.wait(attempt - 1), retryAfter ?? .zero), backoff.limit)
        do { try await Task.sleep(for: pause) } catch { return false }
      }
    }
    drop(batch.count, "unavailable")
    return true
  }

  private func drop(_ count: Int, _ reason: String) { dropped[reason]?.increment(by: count) }

  private func post(_ body: [UInt8], by client: HTTPClient) async -> Answer {
    var request = HTTPClientRequest(url: configuration.endpoint)
    request.method = .POST
    request.headers.add(name: "content-type", value: "application/json")
    for header in configuration.headers { request.headers.replaceOrAdd(name: header.name, value: header.value) }
    request.body = .bytes(body)
    do {
      let response = try await client.execute(request, timeout: TimeAmount(configuration.timeout))
      let status = Int(response.status.code)
      // Read, so that the connection can be used again; a longer answer only ends it.
      _ = try? await response.body.collect(upTo: 65_536)
      switch status {
      case 200..<300: return .taken
      // The retryable statuses of OTLP.
      case 429, 502, 503, 504:
        let pause = response.headers.first(name: "retry-after").flatMap { Int64($0) }
        return .unavailable("status \(status)", retryAfter: pause.map { .seconds(max(0, min($0, 3600))) })
      default: return .refused(status)
      }
    } catch {
      return .unavailable("\(error)", retryAfter: nil)
    }
  }

  private func withClient(_ body: (HTTPClient) async -> Void) async {
    var client = HTTPClient.Configuration(
      redirectConfiguration: .disallow, timeout: .init(connect: .seconds(5), read: TimeAmount(configuration.timeout)))
    client.httpVersion = .http1Only
    client.connectionPool.retryConnectionEstablishment = false
    let open = HTTPClient(eventLoopGroupProvider: .singleton, configuration: client)
    await body(open)
    // A failed shutdown leaves nothing to do: all requests have ended.
    try? await open.shutdown()
  }
}
