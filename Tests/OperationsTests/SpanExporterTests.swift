import FanfareCore
import Logging
import NIOHTTP1
import Operations
import Support
import Testing

@Suite(.timeLimit(.minutes(1))) struct SpanExporterTests {
  private let metrics = PrometheusMetrics()
  private let log = LogRecorder()

  private func exporter(
    _ endpoint: String, _ configure: (inout SpanExporter.Configuration) -> Void = { _ in }
  ) -> SpanExporter {
    var configuration = SpanExporter.Configuration(endpoint: endpoint)
    configuration.linger = .milliseconds(1)
    configuration.firstRetryDelay = .milliseconds(1)
    configuration.resource = [("service.name", "fanfare-test")]
    configure(&configuration)
    return SpanExporter(configuration, logger: log.logger, metrics: metrics)
  }

  private static func spans(_ count: Int) -> [TraceSpan] {
    (1...count).map { number in
      let time = UnixTime(milliseconds: 1_795_248_000_000 + Int64(number))
      return TraceSpan(
        "send accept", .producer,
        TraceContext(trace: TraceID(high: 1, low: UInt64(number)), span: UInt64(number)), parent: 7, from: time,
        to: time + .milliseconds(3), attributes: [("fanfare.hub", .text("shop")), ("fanfare.devices", .number(2))])
    }
  }

  private func run(_ exporter: SpanExporter, _ body: () async throws -> Void) async rethrows {
    let running = Task { await exporter.run() }
    defer { running.cancel() }
    try await body()
  }

  private func metric(_ line: String) -> Bool { metrics.exposition().contains(line + "\n") }

  @Test func spansArriveWithParentAttributesAndSecretHeaders() async throws {
    let collector = try await TestCollector()
    let exporter = exporter(collector.endpoint) { $0.headers = [("api-key", "s3cret")] }
    exporter.record(Self.spans(2))
    await run(exporter) { await collector.received(1) }
    await exporter.drain(within: .seconds(5))
    #expect(
      Set(collector.spans).contains(
        TestCollector.ReceivedSpan(
          service: "fanfare-test", name: "send accept", trace: "0000000000000001" + "0000000000000002",
          id: "0000000000000002", parent: "0000000000000007",
          attributes: ["fanfare.hub": "shop", "fanfare.devices": "2"])))
    #expect(collector.requests.first?.headers.first(name: "api-key") == "s3cret")
    #expect(collector.requests.first?.headers.first(name: "content-type") == "application/json")
    #expect(!log.text.contains("s3cret"))
    try await collector.close()
  }

  @Test func batchIsSentAgainWhenTheCollectorIsBusy() async throws {
    let collector = try await TestCollector(answers: [
      TestCollector.Answer(.tooManyRequests, headers: ["retry-after": "0"]),
      TestCollector.Answer(.serviceUnavailable), TestCollector.Answer(.ok),
    ])
    let exporter = exporter(collector.endpoint)
    exporter.record(Self.spans(3))
    await run(exporter) { await collector.received(3) }
    #expect(collector.spans.count == 3)
    #expect(collector.requests.map(\.body) == Array(repeating: collector.requests[0].body, count: 3))
    try await collector.close()
  }

  @Test func refusedBatchIsDroppedAndTheNextIsSent() async throws {
    let collector = try await TestCollector(answers: [TestCollector.Answer(.badRequest)])
    let exporter = exporter(collector.endpoint) { $0.batchSize = 2 }
    exporter.record(Self.spans(4))
    await run(exporter) { await collector.received(2) }
    #expect(collector.spans.count == 2)
    #expect(metric(#"fanfare_spans_dropped_total{reason="refused"} 2"#))
    try await collector.close()
  }

  @Test func absentCollectorCostsSpansAndNothingElse() async throws {
    let gone = try await TestCollector()
    let endpoint = gone.endpoint
    try await gone.close()
    let exporter = exporter(endpoint) {
      $0.queueSize = 10
      $0.maximumAttempts = 2
    }
    // Nothing runs yet: the queue is bounded.
    exporter.record(Self.spans(25))
    #expect(metric(#"fanfare_spans_dropped_total{reason="queueFull"} 15"#))
    await exporter.drain(within: .seconds(50))
    #expect(metric(#"fanfare_spans_dropped_total{reason="unavailable"} 10"#))
    #expect(metric("fanfare_spans_exported_total 0"))
  }

  @Test func silentCollectorIsGivenUpAfterTheTimeout() async throws {
    let collector = try await TestCollector(answers: Array(repeating: nil, count: 100))
    let exporter = exporter(collector.endpoint) {
      $0.timeout = .milliseconds(50)
      $0.maximumAttempts = 2
    }
    // On a busy machine the time may be over before a request arrives, so requests are not counted.
    await run(exporter) {
      for dropped in 1...2 {
        exporter.record(Self.spans(1))
        while !metric(#"fanfare_spans_dropped_total{reason="unavailable"} \#(dropped)"#) { await Task.yield() }
      }
    }
    #expect(collector.spans.isEmpty)
    try await collector.close()
  }

  @Test func endOfTheProcessDoesNotWaitForASilentCollector() async throws {
    let collector = try await TestCollector(answers: [nil, nil, nil])
    let exporter = exporter(collector.endpoint)
    exporter.record(Self.spans(1))
    await run(exporter) { await collector.received(1) }
    await exporter.drain(within: .milliseconds(50))
    #expect(collector.spans.isEmpty)
    try await collector.close()
  }
}
