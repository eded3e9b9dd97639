import FanfareCore

/// One send to a tag that very many devices carry.
struct TagScenario: BenchScenario {
  let name = "tag"

  func run(_ bench: BenchRun) async throws -> [ScenarioReport] {
    let rig = bench.rig
    let devices = rig.options.scaled(100_000)
    let registry = rig.path("tag.sqlite")
    try await Population.iPhones(devices, tags: [("warm", 0..<(devices / 5)), ("news", 0..<devices)]).register(in: registry)
    let sink = try await Sink.start(rig)
    defer { sink.stop() }
    var reports: [ScenarioReport] = []
    for connections in rig.options.connections {
      let pairs = try await bench.pairs {
        try await bench.ceiling?.run(sink, pushes: devices, connections: connections)
      } product: {
        try await run(rig, sink: sink, registry: registry, devices: devices, connections: connections)
      }
      reports.append(
        ScenarioReport(
          scenario: name, unit: "pushes", connections: connections, sink: sink.name, pairs: pairs,
          goals: [.share(0.65), .cpu(10), .multiple(2.5), .memory(150)]))
    }
    return reports
  }

  private func run(_ rig: BenchRig, sink: Sink, registry: String, devices: Int, connections: Int) async throws -> Measurement {
    let before = try await sink.accepted()
    return try await BenchPipeline.with(rig, sink: sink, counting: .devices) { pipeline in
      let warmUp = devices / 5
      try await pipeline.produce([Population.send(to: .tag("warm"), number: 0)])
      let measurement = try await pipeline.withWorker(registry: registry, connections: connections) { worker in
        _ = try await pipeline.sample(worker, at: warmUp)
        let start = BenchPipeline.Sample(moment: .now, usage: try worker.usage())
        try await pipeline.produce([Population.send(to: .tag("news"), number: 1)])
        return Measurement(count: devices, from: start, to: try await pipeline.sample(worker, at: warmUp + devices))
      }
      let delivered = try pipeline.results().count { $0.outcome == .delivered }
      guard delivered == warmUp + devices else { throw BenchError("\(delivered) of \(warmUp + devices) pushes were delivered") }
      try await pipeline.checkSink(delivered: delivered, before: before)
      return measurement
    }
  }
}
