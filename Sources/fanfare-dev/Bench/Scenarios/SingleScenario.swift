import FanfareCore

/// A backlog of sends, each to one user with one iPhone.
///
/// The measurement lasts from the start of consumption to the last status record.
struct SingleScenario: BenchScenario {
  let name = "single"

  func run(_ bench: BenchRun) async throws -> [ScenarioReport] {
    let rig = bench.rig
    let (users, sends) = (rig.options.scaled(100_000), rig.options.scaled(200_000, floor: 1000))
    let registry = rig.path("single.sqlite")
    try await Population.iPhones(users).register(in: registry)
    let sink = try await Sink.start(rig)
    defer { sink.stop() }
    var reports: [ScenarioReport] = []
    for connections in rig.options.connections {
      let pairs = try await bench.pairs {
        try await bench.ceiling?.run(sink, pushes: sends, connections: connections)
      } product: {
        try await run(rig, sink: sink, registry: registry, users: users, sends: sends, connections: connections)
      }
      reports.append(
        ScenarioReport(
          scenario: name, unit: "sends", connections: connections, sink: sink.name, pairs: pairs,
          goals: [.share(0.45), .cpu(16), .multiple(4), .memory(150)]))
    }
    return reports
  }

  private func run(_ rig: BenchRig, sink: Sink, registry: String, users: Int, sends: Int, connections: Int) async throws
    -> Measurement
  {
    let warmUp = sends / 10
    let before = try await sink.accepted()
    return try await BenchPipeline.with(rig, sink: sink) { pipeline in
      try await pipeline.produce(
        (0..<(warmUp + sends)).lazy.map { number in
          // The order of the sends differs from that of the users' numbers.
          Population.send(to: .user(Population.user((number &* 7919) % users)), number: number)
        })
      let measurement = try await pipeline.withWorker(registry: registry, connections: connections) { worker in
        let start = try await pipeline.sample(worker, at: warmUp)
        return Measurement(planned: sends, from: start, to: try await pipeline.sample(worker, at: warmUp + sends))
      }
      let delivered = try await pipeline.delivered()
      guard delivered == warmUp + sends else {
        throw BenchError("\(delivered) of \(warmUp + sends) pushes were delivered")
      }
      try await pipeline.checkSink(delivered: delivered, before: before)
      return measurement
    }
  }
}
