import HTTP2
import NIOCore
import NIOSSL
import Synchronization

/// The rate of the HTTP/2 client alone, with the same requests as the ceiling.
struct EngineScenario: BenchScenario {
  let name = "engine"

  /// Pushes on each connection before the measurement, to exclude handshakes.
  private static let handshakes = 100

  func run(_ bench: BenchRun) async throws -> [ScenarioReport] {
    let rig = bench.rig
    let sink = try await Sink.start(rig)
    defer { sink.stop() }
    var reports: [ScenarioReport] = []
    for connections in rig.options.connections {
      let pushes = rig.options.scaled(200_000, floor: 2 * Self.handshakes * connections)
      // Warms up both sides.
      _ = try await push(
        max(pushes / 10, 2 * Self.handshakes * connections), connections: connections, to: sink, rig: rig)
      let pairs = try await bench.pairs {
        try await bench.ceiling?.run(sink, pushes: pushes, connections: connections)
      } product: {
        let before = try await sink.accepted()
        let measurement = try await push(pushes, connections: connections, to: sink, rig: rig)
        if let before, let after = try await sink.accepted(), after - before != pushes {
          throw BenchError("the client reports \(pushes) answers; the sink answered \(after - before)")
        }
        return measurement
      }
      reports.append(
        ScenarioReport(
          scenario: name, unit: "pushes", connections: connections, sink: sink.name, pairs: pairs,
          goals: [.share(0.85), .cpu(6), .multiple(1.6)]))
    }
    return reports
  }

  private func push(_ count: Int, connections: Int, to sink: Sink, rig: BenchRig) async throws -> Measurement {
    var tls = TLSConfiguration.makeClientConfiguration()
    if let roots = sink.trustRoots { tls.trustRoots = .file(roots) }
    var configuration = HTTP2PoolConfiguration(host: sink.host, port: sink.port, tls: tls)
    (configuration.minimumConnections, configuration.maximumConnections) = (connections, connections)
    configuration.maximumStreamsPerConnection = 100
    let pool = try HTTP2ConnectionPool(
      configuration: configuration, eventLoopGroup: rig.eventLoopGroup, logger: rig.logger)
    async let running: Void = pool.run()
    let load = EngineLoad(pool: pool, specimen: rig.specimen, authority: "\(sink.host):\(sink.port)", count: count)
    let measured = count - connections * Self.handshakes
    try await load.run(connections * Self.handshakes)
    let (start, before) = (ContinuousClock.now, try ProcessUsage())
    try await load.run(measured)
    let (end, after) = (ContinuousClock.now, try ProcessUsage())
    await pool.close(timeout: .seconds(5))
    await running
    return Measurement(
      count: measured, seconds: (end - start) / .seconds(1), from: before, to: after)
  }
}

/// Keeps some hundred requests in the pool until all have been answered.
private final class EngineLoad: Sendable {
  private struct State {
    var unsent = 0
    var unanswered = 0
    var done: CheckedContinuation<Void, any Error>?
  }

  private let pool: HTTP2ConnectionPool
  private let shared: HTTP2Headers
  /// The `:path` of each device.
  private let paths: [HTTP2Headers]
  private let body: [UInt8]
  private let state = Mutex(State())

  init(pool: HTTP2ConnectionPool, specimen: PushSpecimen, authority: String, count: Int) {
    self.pool = pool
    var shared: HTTP2Headers = [":method": "POST", ":scheme": "https", ":authority": authority]
    for field in specimen.headers { shared.append(field.name, field.value) }
    self.shared = shared
    body = specimen.body
    paths = (0..<min(count, 1000)).map { HTTP2Headers(path: "/3/device/" + Population.handle($0)) }
  }

  /// Sends this many more requests, at least one. Throws on a status other than 200.
  func run(_ count: Int) async throws {
    try await withCheckedThrowingContinuation { continuation in
      let first = state.withLock { state in
        let first = min(count, 500)
        state = State(unsent: count - first, unanswered: count, done: continuation)
        return first
      }
      submit(first)
    }
  }

  private func submit(_ count: Int) {
    let requests = (0..<count).map { number in
      HTTP2Request(
        ticket: UInt64(number), shared: shared, headers: paths[number % paths.count], body: body, timeout: .seconds(30))
    }
    pool.submit(requests) { [self] in answered($0) }
  }

  private func answered(_ completions: [HTTP2Completion]) {
    for completion in completions {
      guard case .success(let response) = completion.result, response.status == 200 else {
        return state.withLock { state in
          state.unsent = 0
          state.done?.resume(throwing: BenchError("a push was not answered with 200: \(completion.result)"))
          state.done = nil
        }
      }
    }
    let next = state.withLock { state in
      state.unanswered -= completions.count
      let next = min(state.unsent, completions.count)
      state.unsent -= next
      if state.unanswered == 0 {
        state.done?.resume()
        state.done = nil
      }
      return next
    }
    if next > 0 { submit(next) }
  }
}
