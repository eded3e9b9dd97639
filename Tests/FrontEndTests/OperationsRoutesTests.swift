import FanfareCore
import Operations
import Synchronization
import Testing

@testable import FrontEnd

@Suite(.timeLimit(.minutes(2))) struct OperationsRoutesTests {
  /// Metrics and the reasons are on the operations listener: strangers must not read them, nor keep probes out.
  @Test func probesOfCallersLearnNoReasons() async throws {
    let problem = Mutex<String?>("no broker")
    let start = ContinuousClock.now
    let seconds = Atomic(0)
    let health = HealthRegistry(
      readiness: [NamedCheck("kafka") { problem.withLock { $0 } }],
      now: { start + .seconds(seconds.load(ordering: .relaxed)) })
    let routes = OperationsRoutes(metrics: PrometheusMetrics(), health: health)
    try await Harness.run({ $0.operations = routes }) { app in
      let alive = try await app.request(.get, "/healthz", as: nil)
      #expect(alive.status == 200)
      #expect(alive["X-Request-Id"] != nil)
      #expect(try alive.json["status"] == "alive")
      let waiting = try await app.request(.get, "/readyz", as: nil)
      #expect(waiting.status == 503 && waiting.text == #"{"status":"waiting"}"#)
      problem.withLock { $0 = nil }
      #expect(try await app.request(.get, "/readyz", as: nil).status == 503, "the answer is kept for a second")
      seconds.add(1, ordering: .relaxed)
      let ready = try await app.request(.get, "/readyz", as: nil)
      #expect(ready.status == 200 && ready.text == #"{"status":"ready"}"# && ready["Cache-Control"] == "no-store")
      try await app.request(.get, "/metrics", as: nil).expectProblem(404, "notFound")
      let wrong = try await app.request(.post, "/healthz", as: nil)
      wrong.expectProblem(405, "methodNotAllowed")
      #expect(wrong["Allow"] == "GET, HEAD")
      // The route belongs to the process, not to a hub.
      try await app.request(.get, "/hubs/default/healthz", as: nil).expectProblem(404, "notFound")
    }
  }
}
