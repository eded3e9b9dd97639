import FanfareCore
import Metrics
import Operations
import Testing

@testable import FrontEnd

@Suite(.timeLimit(.minutes(2))) struct OperationsRoutesTests {
  @Test func operationsRoutesAreServedOnTheSamePort() async throws {
    let metrics = PrometheusMetrics()
    Counter(label: "fanfare_sends_accepted_total", factory: metrics).increment(by: 3)
    let health = HealthRegistry(readiness: [NamedCheck("kafka") { "no broker" }])
    try await Harness.run({ $0.operations = OperationsRoutes(metrics: metrics, health: health) }) { app in
      let alive = try await app.request(.get, "/healthz", as: nil)
      #expect(alive.status == 200)
      #expect(alive["X-Request-Id"] != nil)
      #expect(try alive.json["status"] == "alive")
      let ready = try await app.request(.get, "/readyz", as: nil)
      #expect(ready.status == 503)
      #expect(try ready.json["checks"] == [["name": "kafka", "complaint": "no broker"]])
      let page = try await app.request(.get, "/metrics", as: nil)
      #expect(page.status == 200 && page.text.contains("\nfanfare_sends_accepted_total 3\n"))
      #expect(page["Content-Type"]?.hasPrefix("text/plain; version=0.0.4") == true)
      let head = try await app.request(.head, "/metrics", as: nil)
      #expect(head.status == 200 && head.body.isEmpty)
      let wrong = try await app.request(.post, "/healthz", as: nil)
      wrong.expectProblem(405, "methodNotAllowed")
      #expect(wrong["Allow"] == "GET, HEAD")
      // The routes belong to the process, not to a hub.
      try await app.request(.get, "/hubs/default/healthz", as: nil).expectProblem(404, "notFound")
    }
  }
}
