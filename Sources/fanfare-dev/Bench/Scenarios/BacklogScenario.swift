import FanfareCore

/// Two million sends: rate and memory at the end must equal those at the beginning.
struct BacklogScenario: BenchScenario {
  let name = "backlog"

  func run(_ bench: BenchRun) async throws -> [ScenarioReport] {
    let rig = bench.rig
    let (users, sends) = (rig.options.scaled(100_000), rig.options.scaled(2_000_000, floor: 2000))
    // Within the embedded cluster's capacity; the next chunk follows as this one is consumed.
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
          // Two chunks are on the topic at any time.
          if end + chunk < sends { try await produce((end + chunk)..<min(end + 2 * chunk, sends)) }
        }
        return samples
      }
    }
    if let before, let after = try await sink.accepted(), after - before != sends {
      throw BenchError("\(sends) sends have ended; the sink accepted \(after - before) pushes")
    }
    // The last chunk does not count: its rate profits from the idle producer.
    let spans = zip(samples, samples.dropFirst()).dropLast()
    guard let first = spans.first, let last = spans.last, spans.count > 1 else {
      throw BenchError("there were too few sends to compare beginning and end")
    }
    func row(
      _ part: String, _ span: (start: BenchPipeline.Sample, end: BenchPipeline.Sample),
      beside former: Measurement? = nil
    ) -> ScenarioReport {
      let measurement = Measurement(planned: chunk, from: span.start, to: span.end)
      var report = ScenarioReport(
        scenario: "\(name), \(part)", unit: "sends", connections: 1, sink: sink.name,
        pairs: [MeasuredPair(ceiling: former, product: measurement)],
        goals: [.memory(150)] + (former == nil ? [] : [.share(0.9), .multiple(1.1)]))
      report.notes.append("\(span.end.usage.residentBytes / 1_000_000) MB resident then")
      if former != nil { report.notes.append("the ceiling is the beginning") }
      return report
    }
    let beginning = row("beginning", first)
    return [beginning, row("end", last, beside: beginning.pairs[0].product)]
  }
}
