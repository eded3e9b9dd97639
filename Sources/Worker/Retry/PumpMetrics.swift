import Metrics

/// The pump's metrics.
struct PumpMetrics {
  private let released: Counter
  private let waiting: Gauge

  /// The metrics of the retry topic whose records wait so long. Each topic has a pump of its own.
  init(delay: Duration) {
    let dimensions = [("delay_seconds", "\(delay.components.seconds)")]
    released = Counter(label: "fanfare_retries_released_total", dimensions: dimensions)
    waiting = Gauge(label: "fanfare_retries_waiting", dimensions: dimensions)
  }

  /// Counts records whose time has come, and shows how many are held.
  func show(released count: Int, waiting held: Int) {
    if count > 0 { released.increment(by: count) }
    waiting.record(held)
  }
}
