import CoreMetrics
import Synchronization

/// How many events fell below each of a fixed row of bounds, and their sum.
final class HistogramSeries: MetricSeries, RecorderHandler, TimerHandler {
  /// The most finite bounds; the cells lie in the object itself.
  static let maximumBounds = 31

  private let bounds: [Double]
  /// One cell for each bound, and behind them the events above all bounds; each event in one cell only, added up when
  /// read.
  private let cells: [32 of Atomic<Int64>]
  private let sum = AtomicDouble()

  /// Takes finite bounds in rising order, at most `maximumBounds`; see `HistogramSeries.sound`.
  init(bounds: [Double]) {
    precondition(bounds.count <= Self.maximumBounds, "a histogram of \(bounds.count) bounds")
    self.bounds = bounds
    cells = InlineArray { _ in Atomic(0) }
  }

  /// The bounds that can be used of those given: finite, rising, not too many.
  static func sound(_ bounds: [Double]) -> [Double] {
    Array(Set(bounds.filter(\.isFinite)).sorted().prefix(maximumBounds))
  }

  /// Counts one event. A value that is not a number belongs in no bucket and would spoil the sum: not taken.
  func record(_ value: Double) {
    guard !value.isNaN else { return }
    var index = 0
    while index < bounds.count, value > bounds[index] { index += 1 }
    cells[index].wrappingAdd(1, ordering: .relaxed)
    sum.add(value)
  }

  func record(_ value: Int64) { record(Double(value)) }

  func recordNanoseconds(_ duration: Int64) { record(Double(duration) / 1_000_000_000) }

  func samples(labels: LabelText) -> [MetricSnapshot.Sample] {
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
