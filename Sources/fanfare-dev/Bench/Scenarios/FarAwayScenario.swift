import FanfareCore
import HTTP2
import NIOCore
import PushSimulator
import Synchronization

/// A push service 50 ms away.
///
/// The stream limit must bound the rate, not the machine, and memory must stay bounded.
struct FarAwayScenario: BenchScenario {
  let name = "far away"

  func run(_ bench: BenchRun) async throws -> [ScenarioReport] {
    let rig = bench.rig
    let (users, sends) = (rig.options.scaled(100_000), rig.options.scaled(200_000, floor: 2000))
    let (streams, delay) = (500, TimeAmount.milliseconds(50))
    let registry = rig.path("far.sqlite")
    try await Population.iPhones(users).register(in: registry)
    let accepted = Atomic(0)
    var configuration = HTTP2ServerConfiguration(tls: try .sink(rig.credentials))
    configuration.maximumConcurrentStreams = streams
    let server = HTTP2Server(configuration: configuration, eventLoopGroup: rig.eventLoopGroup, logger: rig.logger) {
      _, responder in
      accepted.add(1, ordering: .relaxed)
      responder.connection.eventLoop.scheduleTask(in: delay) { responder.respond(status: 200) }
    }
    try await server.start()
    let sink = Sink(
      kind: .external, host: "127.0.0.1", port: server.boundPort ?? 0,
      trustRoots: rig.key(SimulatorCredentials.FileName.authority),
      process: nil)
    let warmUp = sends / 10
    let measurement = try await BenchPipeline.with(rig, sink: sink) { pipeline in
      try await pipeline.produce(
        (0..<(warmUp + sends)).lazy.map {
          Population.send(to: .user(Population.user(($0 &* 7919) % users)), number: $0)
        })
      return try await pipeline.withWorker(registry: registry, connections: 1) { worker in
        let start = try await pipeline.sample(worker, at: warmUp)
        return Measurement(planned: sends, from: start, to: try await pipeline.sample(worker, at: warmUp + sends))
      }
    }
    await server.close()
    guard accepted.load(ordering: .relaxed) == warmUp + sends else {
      throw BenchError("\(warmUp + sends) sends have ended; the sink got \(accepted.load(ordering: .relaxed)) pushes")
    }
    let limit = Measurement(count: streams, seconds: Double(delay.nanoseconds) / 1_000_000_000)
    var report = ScenarioReport(
      scenario: name, unit: "sends", connections: 1, sink: "50 ms away",
      pairs: [MeasuredPair(ceiling: limit, product: measurement)],
      goals: [.share(0.9), .memory(150)])
    report.notes.append("the ceiling is \(streams) streams ÷ 50 ms")
    return [report]
  }
}
