import Metrics

/// The pump's metrics.
struct PumpMetrics {
  private let released = Counter(label: "fanfare_retries_released_total")
  private let waiting = Gauge(label: "fanfare_retries_waiting")

  /// Counts records whose time has come, and shows how many are held.
  func show(released count: Int, waiting held: Int) {
    if count > 0 { released.increment(by: count) }
    waiting.record(held)
  }
}
