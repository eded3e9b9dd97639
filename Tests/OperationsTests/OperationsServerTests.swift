import AsyncHTTPClient
import Dispatch
import Logging
import Metrics
import NIOCore
import NIOHTTP1
import NIOPosix
import Synchronization
import Testing

@testable import Operations

@Suite(.timeLimit(.minutes(1))) struct OperationsServerTests {
  private let logger = Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() })

  /// Sends a request on a connection of its own.
  private func get(
    _ path: String, _ port: Int, _ method: HTTPMethod = .GET
  ) async throws -> (status: Int, headers: HTTPHeaders, text: String) {
    var request = HTTPClientRequest(url: "http://127.0.0.1:\(port)\(path)")
    request.method = method
    request.headers.add(name: "Connection", value: "close")
    let response = try await HTTPClient.shared.execute(request, timeout: .minutes(1))
    let body = try await response.body.collect(upTo: 1 << 20)
    return (Int(response.status.code), response.headers, String(buffer: body))
  }

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
      let alive = try await get("/healthz", port)
      #expect(alive.status == 200)
      #expect(alive.text == #"{"checks":[],"status":"alive"}"#)

      let waiting = try await get("/readyz", port)
      #expect(waiting.status == 503)
      #expect(waiting.text == #"{"checks":[{"complaint":"no assignment yet","name":"kafka"}],"status":"waiting"}"#)
      problem.withLock { $0 = nil }
      seconds.withLock { $0 += 1 }
      let ready = try await get("/readyz", port)
      #expect(ready.status == 200)
      #expect(ready.headers["content-type"] == ["application/json"])
      #expect(ready.headers["cache-control"] == ["no-store"])
      #expect(ready.headers["date"].count == 1)

      let page = try await get("/metrics", port)
      #expect(page.status == 200)
      #expect(page.headers["content-type"] == ["text/plain; version=0.0.4; charset=utf-8"])
      #expect(page.text.contains("\nfanfare_sends_accepted_total 3\n"))
      #expect(page.text.hasSuffix("\n"))

      let head = try await get("/metrics", port, .HEAD)
      #expect(head.status == 200 && head.text.isEmpty)
      #expect(try await get("/elsewhere", port).status == 404)
      #expect(try await get("/metrics", port, .POST).status == 404)
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
    loops: [any EventLoopGroup] = [], firstRequestTimeout: Duration = .seconds(3600),
    writeTimeout: Duration = .seconds(3600), _ body: (Int) async throws -> Void
  ) async throws {
    let server = OperationsServer(
      host: "127.0.0.1", port: 0, routes: routes, loops: loops, firstRequestTimeout: firstRequestTimeout,
      writeTimeout: writeTimeout, logger: logger)
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
        #expect(try await get("/healthz", port).status == 200)
      }
      for channel in channels { channel.close(promise: nil) }
    }
  }

  @Test func clientsThatDoNotReadGiveWayToProbes() async throws {
    let metrics = PrometheusMetrics()
    Counter(label: "long", dimensions: [("name", String(repeating: "x", count: 1 << 18))], factory: metrics).increment()
    let routes = OperationsRoutes(metrics: metrics, health: HealthRegistry(readiness: []))
    try await run(routes, writeTimeout: .milliseconds(10)) { port in
      let silent = ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
        .channelOption(.autoRead, value: false).channelOption(.socketOption(.so_rcvbuf), value: 4096)
      for _ in 0..<OperationsServer.maximumConnections {
        let channel = try await silent.connect(host: "127.0.0.1", port: port).get()
        try await channel.writeAndFlush(
          ByteBuffer(string: String(repeating: "GET /metrics HTTP/1.1\r\n\r\n", count: 100)))
      }
      // A probe without a request yet gives way too: it is sent again.
      while (try? await get("/healthz", port).status) != 200 { await Task.yield() }
    }
  }

  @Test func aConnectionWithoutARequestIsClosed() async throws {
    try await run(firstRequestTimeout: .milliseconds(50)) { port in
      let channel = try await connect(port)
      // Fails if it is closed already.
      try? await channel.writeAndFlush(ByteBuffer(string: "GET /healthz HTTP/1.1\r\nHo"))
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
      #expect(try await get("/healthz", port).status == 200)
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
