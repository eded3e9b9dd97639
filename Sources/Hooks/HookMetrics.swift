import FanfareCore
import Metrics

/// A hook's counters, timer and gauges; the handles are created once.
struct HookMetrics: Sendable {
  let delivered: Counter
  /// Events that were given up because the receiver refuses them.
  let refused: Counter
  /// Events that were skipped because they became too old.
  let skipped: Counter
  let undecodable: Counter
  let successes: Counter
  let failures: Counter
  let seconds: Timer
  let lagRecords: Gauge
  let lagSeconds: Gauge
  let state: Gauge

  init(hook: String) {
    let dimensions = [("hook", hook)]
    delivered = Counter(label: "fanfare_hook_events_total", dimensions: dimensions + [("result", "delivered")])
    refused = Counter(label: "fanfare_hook_events_total", dimensions: dimensions + [("result", "refused")])
    skipped = Counter(label: "fanfare_hook_events_total", dimensions: dimensions + [("result", "skipped")])
    undecodable = Counter(label: "fanfare_hook_events_total", dimensions: dimensions + [("result", "undecodable")])
    successes = Counter(label: "fanfare_hook_requests_total", dimensions: dimensions + [("result", "delivered")])
    failures = Counter(label: "fanfare_hook_requests_total", dimensions: dimensions + [("result", "failed")])
    seconds = Timer(label: "fanfare_hook_request_seconds", dimensions: dimensions)
    lagRecords = Gauge(label: "fanfare_hook_lag_records", dimensions: dimensions)
    lagSeconds = Gauge(label: "fanfare_hook_lag_seconds", dimensions: dimensions)
    state = Gauge(label: "fanfare_hook_state", dimensions: dimensions)
  }
}
