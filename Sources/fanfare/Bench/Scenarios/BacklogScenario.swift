import FanfareCore

/// Two million sends: the rate and the memory at the end are to be those of the beginning.
struct BacklogScenario: BenchScenario {
  let name = "backlog"

  func run(_ bench: BenchRun) async throws -> [ScenarioReport] {
    let rig = bench.rig
    let (users, sends) = (rig.options.scaled(100_000), rig.options.scaled(2_000_000, floor: 2000))
    // As much as the embedded cluster certainly holds; more follows as this is worked off.
    let chunk = min(sends / 5, 200_000)
    let registry = rig.path("backlog.sqlite")
    try await Population.iPhones(users).register(in: registry)
    let sink = try await Sink.start(rig)
    defer { sink.stop() }
    let before = try await sink.accepted()
    let samples = try await BenchPipeline.with(rig, sink: sink) { pipeline in
      @Sendable func produce(_ numbers: Range<Int>) async throws {
        try await pipeline.produce(
          numbers.lazy.map { Population.send(to: .user(Population.user(($0 &* 7919) % users)), number: $0) })
      }
      try await produce(0..<(2 * chunk))
      return try await pipeline.withWorker(registry: registry, connections: 1) { worker in
        var samples: [BenchPipeline.Sample] = []
        for end in stride(from: chunk, through: sends, by: chunk) {
          samples.append(try await pipeline.sample(worker, at: end))
          // Two chunks always wait: the one that is being worked off, and the next.
          if end + chunk < sends { try await produce((end + chunk)..<min(end + 2 * chunk, sends)) }
        }
        return samples
      }
    }
    if let before, let after = try await sink.accepted(), after - before != sends {
      throw BenchError("\(sends) sends have ended; the sink accepted \(after - before) pushes")
    }
    let measurements = zip(samples, samples.dropFirst()).map { Measurement(planned: chunk, from: $0, to: $1) }
    guard let first = measurements.first, let last = measurements.last, let start = samples.first, let end = samples.last else {
      throw BenchError("there were too few sends to compare beginning and end")
    }
    func row(_ part: String, _ measurement: Measurement, resident: Int) -> ScenarioReport {
      var report = ScenarioReport(
        scenario: "\(name), \(part)", unit: "sends", connections: 1, sink: sink.name,
        pairs: [MeasuredPair(ceiling: nil, product: measurement)], goals: [.memory(150)])
      report.notes.append("\(resident / 1_000_000) MB resident then")
      return report
    }
    return [
      row("first \(chunk)", first, resident: start.usage.residentBytes),
      row("last \(chunk)", last, resident: end.usage.residentBytes),
    ]
  }
}
