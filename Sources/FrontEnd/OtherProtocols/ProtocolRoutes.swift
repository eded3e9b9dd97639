package import HTTPServer

/// Routes of another protocol than the front end's own, such as that of another product.
///
/// They translate requests to `FrontEndOperations` and have no state of their own. The front end asks them before it
/// looks for a route of its own.
package protocol ProtocolRoutes: Sendable {
  /// Whether the request is theirs: the pattern of its path, for metrics, one of a few; nil if it is not.
  func pattern(of exchange: Exchange) -> String?

  /// Answers a request that is theirs. Errors of any type are described by a `Refusal` and answered by `answer`.
  func respond(to exchange: Exchange) async throws -> Answer

  /// Answers a refused request.
  func answer(to refusal: Refusal, of exchange: Exchange) -> Answer
}
