/// How long something took, very many times. Milliseconds.
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
      // The smallest time that is not exceeded by that share of all.
      Double(sorted[min(sorted.count - 1, Int((Double(sorted.count) * share).rounded(.up)) - 1)]) / 1_000_000
    }
    (count, p50, p99, p999, maximum) = (sorted.count, quantile(0.5), quantile(0.99), quantile(0.999), quantile(1))
  }
}
