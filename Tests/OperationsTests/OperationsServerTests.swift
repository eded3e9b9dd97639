import HTTPTypes
import Hummingbird
import HummingbirdTesting
import Logging
import Metrics
import Synchronization
import Testing

@testable import Operations

@Suite(.timeLimit(.minutes(1))) struct OperationsServerTests {
  private let logger = Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() })

  @Test func healthReadinessAndMetricsAreServedOverHTTP() async throws {
    let metrics = PrometheusMetrics()
    Counter(label: "fanfare_sends_accepted_total", factory: metrics).increment(by: 3)
    let problem = Mutex<String?>("no assignment yet")
    let seconds = Mutex(0)
    let start = ContinuousClock.now
    let health = HealthRegistry(
      readiness: [NamedCheck("kafka") { problem.withLock { $0 } }],
      now: { start + .seconds(seconds.withLock { $0 }) })
    let server = OperationsServer(
      host: "127.0.0.1", port: 0, routes: OperationsRoutes(metrics: metrics, health: health), logger: logger)
    try await withThrowingTaskGroup { group in
      group.addTask { try await server.run() }
      let port = try await server.boundPort()
      try await TestClient.withClient(host: "127.0.0.1", port: port) { client in
        let alive = try await client.get("/healthz")
        #expect(alive.status == .ok)
        #expect(alive.text == #"{"checks":[],"status":"alive"}"#)

        let waiting = try await client.get("/readyz")
        #expect(waiting.status == .serviceUnavailable)
        #expect(waiting.text == #"{"checks":[{"complaint":"no assignment yet","name":"kafka"}],"status":"waiting"}"#)
        problem.withLock { $0 = nil }
        seconds.withLock { $0 += 1 }
        let ready = try await client.get("/readyz")
        #expect(ready.status == .ok)
        #expect(ready.head.headerFields[.contentType] == "application/json")
        #expect(ready.head.headerFields[.cacheControl] == "no-store")

        let page = try await client.get("/metrics")
        #expect(page.status == .ok)
        #expect(page.head.headerFields[.contentType] == "text/plain; version=0.0.4; charset=utf-8")
        #expect(page.text.contains("\nfanfare_sends_accepted_total 3\n"))
        #expect(page.text.hasSuffix("\n"))

        let head = try await client.head("/metrics")
        #expect(head.status == .ok)
        let unknown = try await client.get("/elsewhere")
        #expect(unknown.status == .notFound)
      }
      group.cancelAll()
      while let result = await group.nextResult() {
        if case .failure(let error) = result, !(error is CancellationError) { throw error }
      }
    }
  }

  @Test func readinessIsAMetricThatNeedsNoProbe() async throws {
    let metrics = PrometheusMetrics()
    let problem = Mutex<String?>("no assignment yet")
    let seconds = Mutex(0)
    let start = ContinuousClock.now
    let health = HealthRegistry(
      readiness: [NamedCheck("kafka") { problem.withLock { $0 } }, NamedCheck("registry") { nil }],
      now: {
        start
          + .seconds(
            seconds.withLock {
              $0 += 1; return $0
            })
      })
    let routes = OperationsRoutes(metrics: metrics, health: health)
    let watching = Task { await routes.watchReadiness(every: .milliseconds(1)) }
    while !metrics.exposition().contains("\nfanfare_ready{check=\"kafka\"} 0\n") { await Task.yield() }
    problem.withLock { $0 = nil }
    while !metrics.exposition().contains("\nfanfare_ready{check=\"kafka\"} 1\n") { await Task.yield() }
    #expect(metrics.exposition().contains("\nfanfare_ready{check=\"registry\"} 1\n"))
    watching.cancel()
    await watching.value
  }

  @Test func runFailsIfThePortIsInUse() async throws {
    let routes = OperationsRoutes(metrics: PrometheusMetrics(), health: HealthRegistry(readiness: []))
    let first = OperationsServer(host: "127.0.0.1", port: 0, routes: routes, logger: logger)
    try await withThrowingTaskGroup { group in
      group.addTask {
        // Ended by cancellation, which may throw or not.
        try? await first.run()
      }
      let port = try await first.boundPort()
      let second = OperationsServer(host: "127.0.0.1", port: port, routes: routes, logger: logger)
      await #expect(throws: (any Error).self) { try await second.run() }
      await #expect(throws: OperationsServerError.self) { try await second.boundPort() }
      group.cancelAll()
    }
  }
}

extension TestClient.Response {
  /// The body as text.
  fileprivate var text: String { body.map { String(buffer: $0) } ?? "" }
}
