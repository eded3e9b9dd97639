import CoreMetrics

/// A number that goes up and down.
final class GaugeSeries: MetricSeries, RecorderHandler, MeterHandler {
  private let value = AtomicDouble()

  func record(_ value: Int64) { self.value.store(Double(value)) }
  func record(_ value: Double) { self.value.store(value) }
  func set(_ value: Int64) { self.value.store(Double(value)) }
  func set(_ value: Double) { self.value.store(value) }
  func increment(by amount: Double) { value.add(amount) }
  func decrement(by amount: Double) { value.add(-amount) }

  func samples(labels: LabelText) -> [MetricSnapshot.Sample] {
    [MetricSnapshot.Sample(labels: labels, value: value.load())]
  }
}
