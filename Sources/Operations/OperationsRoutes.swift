import HTTPTypes
package import Hummingbird

/// What operators ask every process: `GET /healthz`, `GET /readyz`, `GET /metrics`. Open to whoever reaches the port:
/// nothing in them is secret.
package struct OperationsRoutes: Sendable {
  private let metrics: PrometheusMetrics
  private let health: HealthRegistry

  package init(metrics: PrometheusMetrics, health: HealthRegistry) {
    self.metrics = metrics
    self.health = health
  }

  /// Adds the three routes to a router of whatever context.
  package func add(to router: some RouterMethods) {
    let health = health
    let metrics = metrics
    router.get("healthz") { _, _ in
      let report = await health.liveness()
      return try Self.answer(report, good: "alive", bad: "stuck")
    }
    router.get("readyz") { _, _ in
      let report = await health.readiness()
      return try Self.answer(report, good: "ready", bad: "waiting")
    }
    router.get("metrics") { _, _ in
      Self.response(.ok, type: "text/plain; version=0.0.4; charset=utf-8", metrics.exposition())
    }
  }

  private static func answer(_ report: HealthReport, good: String, bad: String) throws -> Response {
    response(
      report.isGood ? .ok : .serviceUnavailable, type: "application/json", try report.json(good: good, bad: bad))
  }

  private static func response(_ status: HTTPResponse.Status, type: String, _ text: String) -> Response {
    Response(
      status: status, headers: [.contentType: type, .cacheControl: "no-store"],
      body: ResponseBody(byteBuffer: ByteBuffer(string: text)))
  }
}
