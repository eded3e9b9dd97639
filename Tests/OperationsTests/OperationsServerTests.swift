import Dispatch
import HTTPTypes
import Hummingbird
import HummingbirdTesting
import Logging
import Metrics
import NIOCore
import NIOPosix
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

  /// Runs a server until `body` returns.
  private func run(
    _ routes: OperationsRoutes = OperationsRoutes(metrics: PrometheusMetrics(), health: HealthRegistry(readiness: [])),
    loops: [any EventLoopGroup] = [], firstRequestTimeout: TimeAmount = .hours(1),
    _ body: (Int) async throws -> Void
  ) async throws {
    let server = OperationsServer(
      host: "127.0.0.1", port: 0, routes: routes, loops: loops, firstRequestTimeout: firstRequestTimeout, logger: logger
    )
    try await withThrowingTaskGroup { group in
      group.addTask { try await server.run() }
      try await body(try await server.boundPort())
      group.cancelAll()
      while let result = await group.nextResult() {
        if case .failure(let error) = result, !(error is CancellationError) { throw error }
      }
    }
  }

  private func connect(_ port: Int) async throws -> any Channel {
    try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton).connect(host: "127.0.0.1", port: port).get()
  }

  @Test func slowConnectionsDoNotKeepProbesOut() async throws {
    try await run { port in
      var channels: [any Channel] = []
      for _ in 0..<2 * OperationsServer.maximumConnections {
        let channel = try await connect(port)
        try await channel.writeAndFlush(ByteBuffer(string: "GET /healthz HTTP/1.1\r\nHo"))
        channels.append(channel)
      }
      for _ in 0..<4 {
        try await TestClient.withClient(host: "127.0.0.1", port: port) { client in
          let alive = try await client.get("/healthz")
          #expect(alive.status == .ok)
        }
      }
      for channel in channels { channel.close(promise: nil) }
    }
  }

  @Test func aConnectionWithoutARequestIsClosed() async throws {
    try await run(firstRequestTimeout: .milliseconds(50)) { port in
      let channel = try await connect(port)
      try await channel.writeAndFlush(ByteBuffer(string: "GET /healthz HTTP/1.1\r\nHo"))
      try await channel.closeFuture.get()
    }
  }

  @Test func aTurnThatDoesNotEndIsMeasuredAndProbesAreAnswered() async throws {
    let metrics = PrometheusMetrics()
    let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
    let routes = OperationsRoutes(metrics: metrics, health: HealthRegistry(readiness: []))
    let mayEnd = DispatchSemaphore(value: 0)
    try await run(routes, loops: [group]) { port in
      let blocked = group.any().submit { mayEnd.wait() }
      func longest() -> Double {
        let line = metrics.exposition().split(separator: "\n").first {
          $0.hasPrefix("fanfare_event_loop_longest_turn_seconds ")
        }
        return line.flatMap { Double($0.split(separator: " ")[1]) } ?? 0
      }
      // As long as it is blocked, the turn grows.
      while longest() < 0.5 { await Task.yield() }
      try await TestClient.withClient(host: "127.0.0.1", port: port) { client in
        let alive = try await client.get("/healthz")
        #expect(alive.status == .ok)
      }
      mayEnd.signal()
      try await blocked.get()
      #expect(longest() >= 0.5, "the longest turn of the last minute")
    }
    try await group.shutdownGracefully()
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
