import FanfareCore
import Foundation

/// A backlog of sends for one worker and for two: the gain of the second, and the cost of a push.
struct WorkersScenario: BenchScenario {
  let name = "workers"

  func run(_ bench: BenchRun) async throws -> [ScenarioReport] {
    let rig = bench.rig
    let (users, sends) = (rig.options.scaled(100_000), rig.options.scaled(200_000, floor: 2000))
    let registry = rig.path("workers.sqlite")
    try await Population.iPhones(users).register(in: registry)
    let sink = try await Sink.start(rig)
    defer { sink.stop() }
    let pairs = try await bench.pairs {
      try await run(rig, workers: 1, sink: sink, registry: registry, users: users, sends: sends)
    } product: {
      try await run(rig, workers: 2, sink: sink, registry: registry, users: users, sends: sends)
    }
    // Two workers, the sink, the broker and the reader of status records need this many cores. With fewer the second
    // worker takes CPU from the others.
    let cores = ProcessInfo.processInfo.activeProcessorCount
    var report = ScenarioReport(
      scenario: "\(name), 2 sharing the work", unit: "sends", connections: 1, sink: sink.name, pairs: pairs,
      goals: [.multiple(1.1)] + (cores >= 8 ? [.share(1.8)] : []))
    report.notes.append("the ceiling is the same with 1 worker")
    return [report]
  }

  private func run(
    _ rig: BenchRig, workers: Int, sink: Sink, registry: String, users: Int, sends: Int
  ) async throws -> Measurement {
    let warmUp = sends / 10
    let before = try await sink.accepted()
    return try await BenchPipeline.with(rig, sink: sink) { pipeline in
      let measurement = try await pipeline.withWorkers(workers, registry: "{path: \(registry)}", connections: 1) {
        workers in
        // The workers have their partitions before the load.
        for worker in workers { try await Ready.wait(for: worker) }
        // The workers are suspended until the load is complete, because the producer would compete for the cores. Their
        // sessions last longer than that.
        for worker in workers { worker.signal(SIGSTOP) }
        defer { for worker in workers { worker.signal(SIGCONT) } }
        try await pipeline.produce(
          (0..<(warmUp + sends)).lazy.map { number in
            Population.send(to: .user(Population.user((number &* 7919) % users)), number: number)
          })
        for worker in workers { worker.signal(SIGCONT) }
        let start = try await pipeline.samples(workers, at: warmUp)
        let end = try await pipeline.samples(workers, at: warmUp + sends)
        let parts = zip(start, end).map { Measurement(planned: sends, from: $0, to: $1) }
        var sum = parts[0]
        sum.cpuSeconds = parts.reduce(0) { $0 + ($1.cpuSeconds ?? 0) }
        sum.peakBytes = parts.compactMap(\.peakBytes).max()
        return sum
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
