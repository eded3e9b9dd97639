import FanfareCore
import HTTPTypes
import Hummingbird
import Logging

/// The outermost stage of every request: gives it its id, turns whatever is thrown into a problem document, and
/// measures.
struct AnswerMiddleware: RouterMiddleware {
  typealias Context = FrontEndContext

  let routes: RouteTable
  let metrics: RequestMetrics
  let date: DateField
  let clock: any WallClock

  func handle(
    _ request: Request, context: FrontEndContext, next: @concurrent (Request, FrontEndContext) async throws -> Response
  ) async throws -> Response {
    let start = ContinuousClock.now
    var context = context
    context.requestID = RequestIdentity.requestID(of: request.headers)
    var response: Response
    do {
      response = try await next(request, context)
    } catch {
      response = answer(to: error, request: request, context: context)
    }
    response.headers[.requestID] = context.requestID
    response.headers[.date] = date.value(at: clock.now())
    // Nothing may follow the head of such an answer (RFC 9110 §9.3.2): a client would take it for the beginning of the
    // next one.
    if request.method == .head { response = response.createHeadResponse() }
    metrics.record(
      .now - start, method: request.method, route: context.coreContext.endpointPath.value, status: response.status)
    return response
  }

  private func answer(to error: any Error, request: Request, context: FrontEndContext) -> Response {
    var refusal = Refusal(describing: error)
    if error is HTTPError, refusal.code == .notFound {
      refusal = routes.refusal(of: request.method, path: request.uri.path)
    }
    let level = refusal.code.appearance.logLevel
    if context.logger.logLevel <= level {
      var metadata: Logger.Metadata = [
        LogKeys.requestID: "\(context.requestID)", LogKeys.code: "\(refusal.code.rawValue)",
        LogKeys.detail: "\(refusal.detail)",
      ]
      // The cause's own words go to the log only where they say more than the caller is told; they contain no payload
      // and no token.
      if !(error is Refusal) { metadata[LogKeys.cause] = "\(error)" }
      context.logger.log(level: level, "A request was refused", metadata: metadata)
    }
    return Problem(refusal: refusal, requestID: context.requestID).response
  }
}
