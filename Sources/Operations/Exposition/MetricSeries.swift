/// One series: a metric with one set of labels. The object that handles of swift-metrics write to, from any thread
/// without a lock.
protocol MetricSeries: AnyObject, Sendable {
  /// The lines of the series now. Reads several cells one after another: a sum may be one event ahead of its count.
  func samples(labels: LabelText) -> [MetricSnapshot.Sample]
}
