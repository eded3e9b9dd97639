import FanfareCore

/// One send to very many devices.
struct BroadcastScenario: BenchScenario {
  let name: String
  private let devices: Int
  private let audience: Audience
  private let goals: [ScenarioReport.Goal]

  /// One send to a tag that very many devices carry.
  static let tag = Self(
    name: "tag", devices: 100_000, audience: .tag("news"), goals: [.share(0.65), .cpu(10), .multiple(2.5), .memory(150)])
  /// One send to everybody.
  static let broadcast = Self(name: "broadcast", devices: 1_000_000, audience: .everyone, goals: [.share(0.5), .memory(200)])

  func run(_ bench: BenchRun) async throws -> [ScenarioReport] {
    let rig = bench.rig
    let devices = rig.options.scaled(devices)
    let warmUp = min(devices, 20_000)
    let registry = rig.path("\(name).sqlite")
    var tags = [("warm", 0..<warmUp)]
    if case .tag(let tag) = audience { tags.append((tag, 0..<devices)) }
    try await Population.iPhones(devices, tags: tags).register(in: registry)
    let sink = try await Sink.start(rig)
    defer { sink.stop() }
    var reports: [ScenarioReport] = []
    for connections in rig.options.connections {
      let pairs = try await bench.pairs {
        try await bench.ceiling?.run(sink, pushes: devices, connections: connections)
      } product: {
        try await run(rig, sink: sink, registry: registry, devices: devices, warmUp: warmUp, connections: connections)
      }
      reports.append(
        ScenarioReport(scenario: name, unit: "pushes", connections: connections, sink: sink.name, pairs: pairs, goals: goals))
    }
    return reports
  }

  private func run(
    _ rig: BenchRig, sink: Sink, registry: String, devices: Int, warmUp: Int, connections: Int
  ) async throws -> Measurement {
    let before = try await sink.accepted()
    return try await BenchPipeline.with(rig, sink: sink, counting: .devices) { pipeline in
      try await pipeline.produce([Population.send(to: .tag("warm"), number: 0)])
      let measurement = try await pipeline.withWorker(registry: registry, connections: connections) { worker in
        _ = try await pipeline.sample(worker, at: warmUp)
        let start = BenchPipeline.Sample(moment: .now, usage: try worker.usage())
        try await pipeline.produce([Population.send(to: audience, number: 1)])
        return Measurement(count: devices, from: start, to: try await pipeline.sample(worker, at: warmUp + devices))
      }
      let delivered = try pipeline.statuses.delivered()
      guard delivered == warmUp + devices else { throw BenchError("\(delivered) of \(warmUp + devices) pushes were delivered") }
      try await pipeline.checkSink(delivered: delivered, before: before)
      return measurement
    }
  }
}
