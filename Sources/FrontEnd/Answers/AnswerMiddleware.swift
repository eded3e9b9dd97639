import FanfareCore
import HTTPTypes
import Hummingbird
import Logging
import Metrics
import Synchronization

/// The outermost stage of every request that the router answers.
/// Gives it an id, turns thrown errors into problem documents, and measures it.
struct AnswerMiddleware: RouterMiddleware {
  typealias Context = FrontEndContext

  let routes: RouteTable
  let origins: OriginRule
  let desk: AnswerDesk

  func handle(
    _ request: Request, context: FrontEndContext, next: @concurrent (Request, FrontEndContext) async throws -> Response
  ) async throws -> Response {
    let start = ContinuousClock.now
    var context = context
    context.requestID = RequestIdentity.requestID(of: request.headers)
    var response: Response
    do {
      try context.requireProxy(for: request)
      try origins.check(request, context)
      response = try await next(request, context)
    } catch {
      response = answer(to: error, request: request, context: context)
    }
    desk.complete(&response, requestID: context.requestID)
    // Answers to HEAD have no body (RFC 9110 §9.3.2): clients would read it as the beginning of the next answer.
    if request.method == .head { response = response.createHeadResponse() }
    // The client has gone before the answer: its status would count a failure that is not the server's.
    if context.answer.isAbandoned { return response }
    desk.metrics.record(
      .now - start, method: request.method, route: context.coreContext.endpointPath.value, status: response.status)
    return response
  }

  private func answer(to error: any Error, request: Request, context: FrontEndContext) -> Response {
    var refusal = Refusal(describing: error)
    if error is HTTPError, refusal.code == .notFound {
      refusal = routes.refusal(of: request.method, path: request.uri.path)
    }
    return desk.answer(to: refusal, causedBy: error, requestID: context.requestID)
  }
}

/// The common part of the router's answers and the direct ones.
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
  func complete(_ response: inout Response, requestID: String) {
    response.headers[.requestID] = requestID
    response.headers[.date] = date
    // RFC 6797. Browsers ask for pages, which the router answers: accepted sends do without the field.
    if isSecure { response.headers[.strictTransportSecurity] = "max-age=31536000" }
  }

  /// Logs a refusal, and makes its answer.
  func answer(to refusal: Refusal, causedBy error: any Error, requestID: String) -> Response {
    log(refusal, causedBy: error, requestID: requestID)
    return Problem(refusal: refusal, requestID: requestID).response
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
    if status.code >= 500 { serverErrors.increment() }
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

extension Response {
  /// Makes an answer with a JSON body; `isPrivate`: caches must not store it.
  static func json(
    _ body: [UInt8], status: HTTPResponse.Status = .ok, location: String? = nil, isPrivate: Bool = false
  ) -> Response {
    var headers: HTTPFields = [.contentType: "application/json"]
    if isPrivate { headers[.cacheControl] = "no-store" }
    if let location { headers[.location] = location }
    return Response(status: status, headers: headers, body: ResponseBody(byteBuffer: ByteBuffer(bytes: body)))
  }
}
