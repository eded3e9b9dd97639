import Benchmark
import CMeter

extension BenchmarkMetric {
  /// Requests for memory, of Swift and of the C libraries.
  static let allocations = BenchmarkMetric.custom("Allocations")
  /// Processor time of all threads.
  static let processorTime = BenchmarkMetric.custom("CPU (ns)")
}

extension Benchmark {
  /// What was used up to a moment.
  private struct Reading {
    let allocations = meter_allocations()
    let nanoseconds = meter_cpu_nanoseconds()
  }

  /// Measures `body`, and nothing else of the benchmark.
  func measure(_ body: () throws -> Void) rethrows {
    let before = Reading()
    try body()
    note(Reading(), since: before)
  }

  /// Measures `body`, and nothing else of the benchmark.
  func measure(_ body: () async -> Void) async {
    let before = Reading()
    await body()
    note(Reading(), since: before)
  }

  private func note(_ after: Reading, since before: Reading) {
    measurement(.allocations, Int(after.allocations - before.allocations))
    measurement(.processorTime, Int(after.nanoseconds - before.nanoseconds))
  }
}
