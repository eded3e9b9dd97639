import FanfareCore

/// A send to very many devices.
struct BroadcastScenario: BenchScenario {
  let name: String
  private let devices: Int
  private let audience: Audience
  private let goals: [ScenarioReport.Goal]
  private var isInDatabase = false

  /// A send to a tag of very many devices.
  static let tag = Self(
    name: "tag", devices: 100_000, audience: .tag("news"),
    goals: [.share(0.65), .cpu(10), .multiple(2.5), .memory(150)])
  /// A send to everyone.
  static let broadcast = Self(
    name: "broadcast", devices: 1_000_000, audience: .everyone, goals: [.share(0.5), .memory(200)])
  /// A send to everyone, with registrations in PostgreSQL.
  static let databaseBroadcast = Self(
    name: "broadcast, PostgreSQL", devices: 1_000_000, audience: .everyone, goals: [.share(0.5), .memory(200)],
    isInDatabase: true
  )

  func run(_ bench: BenchRun) async throws -> [ScenarioReport] {
    let rig = bench.rig
    let devices = rig.options.scaled(devices)
    let sink = try await Sink.start(rig)
    defer { sink.stop() }
    if isInDatabase { return try await inDatabase(bench, devices, sink: sink) }
    let warmUp = min(devices, 20_000)
    let file = rig.path("\(name).sqlite")
    var tags = [("warm", 0..<warmUp)]
    if case .tag(let tag) = audience { tags.append((tag, 0..<devices)) }
    try await Population.iPhones(devices, tags: tags).register(in: file)
    return try await reports(
      bench, of: Reached(registry: "{path: \(file)}", devices: devices, warm: (.tag("warm"), warmUp)), sink: sink)
  }

  private func inDatabase(_ bench: BenchRun, _ devices: Int, sink: Sink) async throws -> [ScenarioReport] {
    guard let database = try BenchDatabase(bench.rig) else {
      var report = ScenarioReport(scenario: name, unit: "pushes", sink: sink.name)
      report.notes.append("not measured: PostgreSQL is not installed")
      return [report]
    }
    return try await database.withRegistries(of: [Crowd(devices: devices, isApple: true)]) { filled in
      let warmUp = (0..<devices).count { filled[0].crowd.device($0).tags.contains("beta") }
      return try await reports(
        bench, of: Reached(registry: filled[0].settings, devices: devices, warm: (.tag("beta"), warmUp)), sink: sink)
    }
  }

  /// The audience of the sends.
  private struct Reached {
    /// The registry in the worker's settings.
    let registry: String
    let devices: Int
    /// The audience of the warm-up send, and its size.
    let warm: (audience: Audience, devices: Int)
  }

  private func reports(_ bench: BenchRun, of reached: Reached, sink: Sink) async throws -> [ScenarioReport] {
    let rig = bench.rig
    var reports: [ScenarioReport] = []
    for connections in rig.options.connections {
      let pairs = try await bench.pairs {
        try await bench.ceiling?.run(sink, pushes: reached.devices, connections: connections)
      } product: {
        try await run(rig, sink: sink, reached, connections: connections)
      }
      reports.append(
        ScenarioReport(
          scenario: name, unit: "pushes", connections: connections, sink: sink.name, pairs: pairs, goals: goals))
    }
    return reports
  }

  private func run(_ rig: BenchRig, sink: Sink, _ reached: Reached, connections: Int) async throws -> Measurement {
    let (devices, warmUp) = (reached.devices, reached.warm.devices)
    let before = try await sink.accepted()
    return try await BenchPipeline.with(rig, sink: sink, counting: .devices) { pipeline in
      try await pipeline.produce([Population.send(to: reached.warm.audience, number: 0)])
      let measurement = try await pipeline.withWorkers(1, registry: reached.registry, connections: connections) {
        workers in
        let worker = workers[0]
        _ = try await pipeline.sample(worker, at: warmUp)
        let start = BenchPipeline.Sample(moment: .now, count: warmUp, usage: try worker.usage())
        try await pipeline.produce([Population.send(to: audience, number: 1)])
        return Measurement(planned: devices, from: start, to: try await pipeline.sample(worker, at: warmUp + devices))
      }
      let delivered = try await pipeline.delivered()
      guard delivered == warmUp + devices else {
        throw BenchError("\(delivered) of \(warmUp + devices) pushes were delivered")
      }
      try await pipeline.checkSink(delivered: delivered, before: before)
      return measurement
    }
  }
}
