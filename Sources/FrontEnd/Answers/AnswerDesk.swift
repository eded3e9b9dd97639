import FanfareCore
import HTTPServer
import HTTPTypes
import Logging
import Metrics
import Synchronization

/// The common part of all answers.
struct AnswerDesk: Sendable {
  let metrics = RequestMetrics()
  let clock: any WallClock
  /// Whether the listener has TLS.
  private let isSecure: Bool
  let logger: Logger
  private let dateField = DateField()

  init(clock: any WallClock, isSecure: Bool, logger: Logger) {
    (self.clock, self.isSecure, self.logger) = (clock, isSecure, logger)
  }

  /// The value of the `Date` field.
  var date: String { dateField.value(at: clock.now()) }

  /// Adds the fields of every answer.
  func complete(_ answer: inout Answer, requestID: String) {
    answer.headers[.requestID] = requestID
    answer.headers[.date] = date
    // RFC 6797. Accepted sends do without the field: browsers ask for pages.
    if isSecure { answer.headers[.strictTransportSecurity] = "max-age=31536000" }
  }

  /// Logs a refusal, and makes its answer.
  func answer(to refusal: Refusal, causedBy error: any Error, requestID: String) -> Answer {
    log(refusal, causedBy: error, requestID: requestID)
    return Problem(refusal: refusal, requestID: requestID).answer
  }

  /// Logs a refusal.
  func log(_ refusal: Refusal, causedBy error: any Error, requestID: String) {
    let level = refusal.isCausedByCaller ? .debug : refusal.code.answer.logLevel
    if logger.logLevel <= level {
      var metadata: Logger.Metadata = [
        LogKeys.requestID: "\(requestID)", LogKeys.code: "\(refusal.code.rawValue)",
        LogKeys.detail: "\(refusal.detail)",
      ]
      // The cause is logged only where the caller is told less. Its text contains no payloads and no tokens.
      if !(error is Refusal) { metadata[LogKeys.cause] = "\(error)" }
      logger.log(level: level, "Request refused", metadata: metadata)
    }
  }
}

/// Measures the duration of requests by method, route and status.
///
/// Makes a handle for each combination once. There are few: routes are patterns, not paths.
final class RequestMetrics: Sendable {
  private struct Key: Hashable {
    let method: HTTPRequest.Method
    let route: String
    let status: Int
  }

  private let timers = Mutex<[Key: Timer]>([:])
  /// From the start, because an increase is seen only in a series that was there before.
  private let serverErrors = Counter(label: "fanfare_http_server_errors_total")

  /// Records one request. `route` is the pattern that matched, or nil.
  func record(_ duration: Duration, method: HTTPRequest.Method, route: String?, status: HTTPResponse.Status) {
    timer(method: method, route: route, status: status).record(duration: duration)
    if status.code >= 500 { serverErrors.increment() }
  }

  /// The timer of a combination, for those who record many.
  func timer(method: HTTPRequest.Method, route: String?, status: HTTPResponse.Status) -> Timer {
    let key = Key(method: method, route: route ?? "none", status: status.code)
    return timers.withLock { timers in
      if let timer = timers[key] { return timer }
      let timer = Timer(
        label: "fanfare_http_request_seconds",
        dimensions: [("method", key.method.rawValue), ("route", key.route), ("status", String(key.status))])
      timers[key] = timer
      return timer
    }
  }
}

/// The `Date` field of answers. Its text is made once a second.
final class DateField: Sendable {
  private let latest = Mutex((second: Int64.min, text: ""))

  func value(at now: UnixTime) -> String {
    latest.withLock { latest in
      if latest.second != now.seconds { latest = (now.seconds, now.httpDate) }
      return latest.text
    }
  }
}

extension Answer {
  /// Makes an answer with a JSON body; `isPrivate`: caches must not store it.
  static func json(
    _ body: [UInt8], status: HTTPResponse.Status = .ok, location: String? = nil, isPrivate: Bool = false
  ) -> Answer {
    var headers: HTTPFields = [.contentType: "application/json"]
    if isPrivate { headers[.cacheControl] = "no-store" }
    if let location { headers[.location] = location }
    return Answer(status: status, headers: headers, body: body)
  }
}
