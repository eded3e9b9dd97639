/// The result of one run.
struct Measurement: Sendable {
  /// The number of pushes, posts or lines.
  var count: Int
  var seconds: Double
  /// The CPU time of the measured process; nil if not measured.
  var cpuSeconds: Double?
  /// The instructions of the measured process in user mode; nil if they cannot be counted.
  var instructions: Int?
  /// The peak memory of the measured process, in bytes.
  var peakBytes: Int?

  var rate: Double { Double(count) / seconds }
  /// CPU microseconds per item.
  var cpuMicroseconds: Double? { cpuSeconds.map { $0 * 1_000_000 / Double(count) } }
  /// Instructions per item.
  var instructionsEach: Double? { instructions.map { Double($0) / Double(count) } }
}

extension Measurement {
  /// What a process did between two readings of its usage.
  init(count: Int, seconds: Double, from start: ProcessUsage, to end: ProcessUsage) {
    self.init(count: count, seconds: seconds)
    setUsage(from: start, to: end)
  }

  /// Takes the process's usage over from two readings.
  mutating func setUsage(from start: ProcessUsage, to end: ProcessUsage) {
    cpuSeconds = end.cpuSeconds - start.cpuSeconds
    instructions = end.instructions.flatMap { end in start.instructions.map { end - $0 } }
    peakBytes = end.peakBytes
  }

  /// The same without the usage of CPU and memory.
  var withoutUsage: Measurement { Measurement(count: count, seconds: seconds) }
}

/// A measurement of the ceiling, and one of the product directly after it.
struct MeasuredPair: Sendable {
  var ceiling: Measurement?
  var product: Measurement

  /// The product's rate as a share of the ceiling's.
  var share: Double? { ceiling.map { product.rate / $0.rate } }
  /// The product's CPU per push as a multiple of the ceiling's.
  var multiple: Double? {
    guard let own = product.cpuMicroseconds, let ceiling = ceiling?.cpuMicroseconds, ceiling > 0 else { return nil }
    return own / ceiling
  }
}

extension Sequence<Double> {
  /// The median; nil if empty.
  var median: Double? {
    let sorted = sorted()
    guard !sorted.isEmpty else { return nil }
    return (sorted[(sorted.count - 1) / 2] + sorted[sorted.count / 2]) / 2
  }
}

/// A distribution of latencies, in milliseconds.
struct Latency: Sendable {
  let count: Int
  let p50: Double
  let p99: Double
  let p999: Double
  let maximum: Double

  /// The distribution of times in nanoseconds; nil for none.
  init?(nanoseconds: [Int64]) {
    guard !nanoseconds.isEmpty else { return nil }
    let sorted = nanoseconds.sorted()
    func quantile(_ share: Double) -> Double {
      // The smallest value that is at least as large as this share of the values.
      Double(sorted[min(sorted.count - 1, Int((Double(sorted.count) * share).rounded(.up)) - 1)]) / 1_000_000
    }
    (count, p50, p99, p999, maximum) = (sorted.count, quantile(0.5), quantile(0.99), quantile(0.999), quantile(1))
  }
}
