import HTTPTypes
import Hummingbird
package import HummingbirdCore

/// Routes of another protocol than the front end's own, such as that of another product.
///
/// They translate requests to `FrontEndOperations` and have no state of their own. The front end asks them before its
/// own router.
package protocol ProtocolRoutes: Sendable {
  /// Whether the request is theirs: the pattern of its path, for metrics, one of a few; nil if it is not.
  func pattern(of request: Request) -> String?

  /// Answers a request that is theirs. Errors of any type are described by a `Refusal` and answered by `answer`.
  func respond(to request: ProtocolRequest) async throws -> Response

  /// Answers a refused request.
  func answer(to refusal: Refusal, of request: ProtocolRequest) -> Response
}

/// A request to routes of another protocol.
package struct ProtocolRequest: Sendable {
  /// The request without its body; see `body(upTo:)`.
  package let request: Request
  let context: FrontEndContext

  init(_ request: Request, _ context: FrontEndContext) { (self.request, self.context) = (request, context) }

  /// See `RequestIdentity.requestID`.
  package var id: String { context.requestID }

  /// Whether the client speaks TLS, with this server or with a proxy in front of it.
  package var isSecure: Bool { request.head.scheme == "https" || context.connection.isProxy }

  /// Returns the whole body. Throws `.tooLarge` if it has more than `limit` bytes, if possible before reading it.
  package func body(upTo limit: Int) async throws -> ArraySlice<UInt8> { try await request.bytes(upTo: limit) }

  /// Returns the query's parameters in order, decoded, a `+` as a space. Throws `.invalidParameter` for a malformed
  /// percent escape.
  package func query() throws(Refusal) -> [(name: String, value: String)] {
    try Query(request.uri.query?.replacing("+", with: "%20")).parameters
  }

  /// Decodes percent escapes; nil if one is malformed or the result is not UTF-8.
  package static func decoded(_ text: some StringProtocol) -> String? { Query.decoded(Substring(text).utf8) }
}

/// Answers the requests that belong to other protocols.
struct ProtocolMiddleware: RouterMiddleware {
  typealias Context = FrontEndContext

  let protocols: [any ProtocolRoutes]
  let desk: AnswerDesk

  func handle(
    _ request: Request, context: FrontEndContext, next: @concurrent (Request, FrontEndContext) async throws -> Response
  ) async throws -> Response {
    for routes in protocols {
      guard let pattern = routes.pattern(of: request) else { continue }
      context.coreContext.endpointPath.value = pattern
      let request = ProtocolRequest(request, context)
      do {
        return try await routes.respond(to: request)
      } catch {
        let refusal = Refusal(describing: error)
        desk.log(refusal, causedBy: error, requestID: context.requestID)
        return routes.answer(to: refusal, of: request)
      }
    }
    return try await next(request, context)
  }
}
