import HTTPTypes
import Metrics
import Synchronization

/// How long requests take, by method, route and status. Handles are made once for each combination that occurs; routes
/// are patterns, so that there are few.
final class RequestMetrics: Sendable {
  private struct Key: Hashable {
    let method: HTTPRequest.Method
    let route: String
    let status: Int
  }

  private let timers = Mutex<[Key: Timer]>([:])

  init() {}

  /// Counts one request. `route` is the pattern that matched; nil when none did.
  func record(_ duration: Duration, method: HTTPRequest.Method, route: String?, status: HTTPResponse.Status) {
    let key = Key(method: method, route: route ?? "none", status: status.code)
    let timer = timers.withLock { timers in
      if let timer = timers[key] { return timer }
      let timer = Timer(
        label: "fanfare_http_request_seconds",
        dimensions: [("method", key.method.rawValue), ("route", key.route), ("status", String(key.status))])
      timers[key] = timer
      return timer
    }
    timer.record(duration: duration)
  }
}
