import CoreMetrics
import Synchronization

/// One metric with one set of labels.
/// The handles of swift-metrics write to it from any thread, without a lock.
protocol MetricSeries: AnyObject, Sendable {
  /// Returns the series' lines.
  /// Its cells are read one after another, so that a sum may be one event ahead of its count.
  func samples(labels: MetricLabels) -> [MetricSnapshot.Sample]
}

/// A number that only grows.
final class CounterSeries: MetricSeries, CounterHandler, FloatingPointCounterHandler {
  /// Separate from fractions: adding to an integer is one instruction, adding to a double is a loop.
  private let whole = Atomic<Int64>(0)
  private let fraction = AtomicDouble()

  /// Adds an amount; ignores negative ones.
  func increment(by amount: Int64) {
    guard amount > 0 else { return }
    whole.wrappingAdd(amount, ordering: .relaxed)
  }

  /// Adds an amount; ignores negative and non-finite ones.
  func increment(by amount: Double) {
    guard amount > 0, amount.isFinite else { return }
    fraction.add(amount)
  }

  func reset() {
    whole.store(0, ordering: .relaxed)
    fraction.store(0)
  }

  func samples(labels: MetricLabels) -> [MetricSnapshot.Sample] {
    [MetricSnapshot.Sample(labels: labels, value: Double(whole.load(ordering: .relaxed)) + fraction.load())]
  }
}

/// A number that rises and falls.
final class GaugeSeries: MetricSeries, RecorderHandler, MeterHandler {
  private let value = AtomicDouble()

  func record(_ value: Int64) { self.value.store(Double(value)) }
  func record(_ value: Double) { self.value.store(value) }
  func set(_ value: Int64) { self.value.store(Double(value)) }
  func set(_ value: Double) { self.value.store(value) }
  func increment(by amount: Double) { value.add(amount) }
  func decrement(by amount: Double) { value.add(-amount) }

  func samples(labels: MetricLabels) -> [MetricSnapshot.Sample] {
    [MetricSnapshot.Sample(labels: labels, value: value.load())]
  }
}

/// Counts events by buckets with fixed upper bounds, and sums them up.
final class HistogramSeries: MetricSeries, RecorderHandler, TimerHandler {
  /// The most bounds.
  /// The cells lie in the object itself, so their number is fixed; the last one is for events above all bounds.
  static let maximumBounds = 31

  private let bounds: [Double]
  /// Each event is counted in one cell only; `samples` makes the counts cumulative.
  private let cells: [32 of Atomic<Int64>]
  private let sum = AtomicDouble()

  /// Takes at most `maximumBounds` finite bounds in rising order; see `usableBounds`.
  init(bounds: [Double]) {
    precondition(bounds.count <= Self.maximumBounds, "a histogram with \(bounds.count) bounds")
    self.bounds = bounds
    cells = InlineArray { _ in Atomic(0) }
  }

  /// Returns the finite bounds, sorted, each once, at most `maximumBounds`.
  static func usableBounds(_ bounds: [Double]) -> [Double] {
    Array(Set(bounds.filter(\.isFinite)).sorted().prefix(maximumBounds))
  }

  /// Counts one event. Ignores NaN, which fits no bucket and would spoil the sum.
  func record(_ value: Double) {
    guard !value.isNaN else { return }
    var index = 0
    while index < bounds.count, value > bounds[index] { index += 1 }
    cells[index].wrappingAdd(1, ordering: .relaxed)
    sum.add(value)
  }

  func record(_ value: Int64) { record(Double(value)) }

  func recordNanoseconds(_ duration: Int64) { record(Double(duration) / 1_000_000_000) }

  func samples(labels: MetricLabels) -> [MetricSnapshot.Sample] {
    var samples: [MetricSnapshot.Sample] = []
    samples.reserveCapacity(bounds.count + 3)
    var count: Int64 = 0
    for index in 0...bounds.count {
      count += cells[index].load(ordering: .relaxed)
      let bound = index < bounds.count ? MetricSnapshot.number(bounds[index]) : "+Inf"
      samples.append(
        MetricSnapshot.Sample(suffix: "_bucket", labels: labels.appending("le", bound), value: Double(count)))
    }
    samples.append(MetricSnapshot.Sample(suffix: "_sum", labels: labels.text, value: sum.load()))
    samples.append(MetricSnapshot.Sample(suffix: "_count", labels: labels.text, value: Double(count)))
    return samples
  }
}

/// A floating-point number that many threads add to without a lock.
private struct AtomicDouble: ~Copyable, Sendable {
  private let bits = Atomic<UInt64>(0)

  func load() -> Double { Double(bitPattern: bits.load(ordering: .relaxed)) }

  func store(_ value: Double) { bits.store(value.bitPattern, ordering: .relaxed) }

  func add(_ amount: Double) {
    var old = bits.load(ordering: .relaxed)
    while true {
      let new = (Double(bitPattern: old) + amount).bitPattern
      let (exchanged, current) = bits.weakCompareExchange(expected: old, desired: new, ordering: .relaxed)
      if exchanged { return }
      // Another thread was faster.
      old = current
    }
  }
}
