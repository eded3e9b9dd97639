import CoreMetrics
import Synchronization

/// A number that only grows.
final class CounterSeries: MetricSeries, CounterHandler, FloatingPointCounterHandler {
  /// Whole increments have a cell of their own, because adding to an integer is one instruction and adding to a double
  /// is a loop.
  private let whole = Atomic<Int64>(0)
  private let fraction = AtomicDouble()

  /// Adds; a counter cannot go down, so negative amounts are not taken.
  func increment(by amount: Int64) {
    guard amount > 0 else { return }
    whole.wrappingAdd(amount, ordering: .relaxed)
  }

  /// Adds; amounts that are negative or not finite are not taken.
  func increment(by amount: Double) {
    guard amount > 0, amount.isFinite else { return }
    fraction.add(amount)
  }

  func reset() {
    whole.store(0, ordering: .relaxed)
    fraction.store(0)
  }

  func samples(labels: LabelText) -> [MetricSnapshot.Sample] {
    [MetricSnapshot.Sample(labels: labels, value: Double(whole.load(ordering: .relaxed)) + fraction.load())]
  }
}
