import FanfareCore
import Operations
import Testing

@testable import FrontEnd

@Suite(.timeLimit(.minutes(2))) struct OperationsRoutesTests {
  /// Readiness and metrics are on the operations listener: strangers must not read them, nor keep probes out.
  @Test func onlyLivenessIsServedToCallers() async throws {
    let health = HealthRegistry(readiness: [NamedCheck("kafka") { "no broker" }])
    let routes = OperationsRoutes(metrics: PrometheusMetrics(), health: health)
    try await Harness.run({ $0.operations = routes }) { app in
      let alive = try await app.request(.get, "/healthz", as: nil)
      #expect(alive.status == 200)
      #expect(alive["X-Request-Id"] != nil)
      #expect(try alive.json["status"] == "alive")
      for path in ["/readyz", "/metrics"] {
        try await app.request(.get, path, as: nil).expectProblem(404, "notFound")
      }
      let wrong = try await app.request(.post, "/healthz", as: nil)
      wrong.expectProblem(405, "methodNotAllowed")
      #expect(wrong["Allow"] == "GET, HEAD")
      // The route belongs to the process, not to a hub.
      try await app.request(.get, "/hubs/default/healthz", as: nil).expectProblem(404, "notFound")
    }
  }
}
