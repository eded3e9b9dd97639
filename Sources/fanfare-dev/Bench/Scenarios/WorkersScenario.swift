import FanfareCore
import Foundation
import Synchronization

/// A backlog of sends for one worker and for two: the gain of the second, and the cost of a push.
///
/// The second worker joins the group of the first, as one does that an operator starts because sends wait.
final class WorkersScenario: BenchScenario {
  let name = "workers"
  /// The second worker's share of each run, in per cent.
  private let shares = Mutex<[Int]>([])

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
    let shares = shares.withLock { $0 }
    report.notes.append("the second worker took \(shares.map { "\($0) %" }.joined(separator: ", ")) of the sends")
    guard shares.allSatisfy({ (40...60).contains($0) }) else {
      throw BenchError("the second worker took \(shares) per cent of the sends instead of half")
    }
    return [report]
  }

  private func run(
    _ rig: BenchRig, workers: Int, sink: Sink, registry: String, users: Int, sends: Int
  ) async throws -> Measurement {
    let warmUp = sends / 10
    let before = try await sink.accepted()
    return try await BenchPipeline.with(rig, sink: sink) { pipeline in
      var metrics: [RoleMetrics] = []
      let partitions = try await pipeline.partitionsOfSends()
      let measurement = try await pipeline.withWorkers(workers, registry: "{path: \(registry)}", connections: 1) {
        worker in
        let address = try await worker.address(of: "operations")
        try await Ready.wait(for: worker, operations: address)
        metrics.append(RoleMetrics(operations: address))
        // Each has its partitions before the next one starts, and before the load.
        try await RoleMetrics.waitForEvenShares(of: [pipeline.topics.sends], partitions: partitions, among: metrics)
      } _: { workers in
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
        let instructions = parts.compactMap(\.instructions)
        sum.instructions = instructions.count == parts.count ? instructions.reduce(0, +) : nil
        sum.peakBytes = parts.compactMap(\.peakBytes).max()
        if metrics.count > 1 {
          let share = try await metrics[1].sum("fanfare_sends_dispatched_total") / Double(warmUp + sends)
          shares.withLock { $0.append(Int((share * 100).rounded())) }
        }
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
