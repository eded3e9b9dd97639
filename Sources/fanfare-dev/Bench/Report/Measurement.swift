/// What one run has shown.
struct Measurement: Sendable {
  /// Pushes, posts, lines: what the scenario counts.
  var count: Int
  var seconds: Double
  /// User and system time of the measured process alone; nil where that was not the question.
  var cpuSeconds: Double?
  /// The most memory the measured process had resident, in bytes.
  var peakBytes: Int?

  /// Per second.
  var rate: Double { Double(count) / seconds }
  /// Microseconds of CPU for each.
  var cpuMicroseconds: Double? { cpuSeconds.map { $0 * 1_000_000 / Double(count) } }
}

/// The ceiling and the product, one right after the other.
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
  /// The middle value, of an even number the mean of both; nil for none.
  var median: Double? {
    let sorted = sorted()
    guard !sorted.isEmpty else { return nil }
    return (sorted[(sorted.count - 1) / 2] + sorted[sorted.count / 2]) / 2
  }
}
