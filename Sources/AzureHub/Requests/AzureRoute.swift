import FanfareCore
import FrontEnd
import HTTPServer
import HTTPTypes

/// A route below a hub: method, pattern, the right that it needs, and what it does.
struct AzureRoute: Sendable {
  typealias Handler = @Sendable (AzureRequest, Caller) async throws -> Answer

  let method: HTTPRequest.Method
  /// A path below the hub such as `messages/{id}`; empty for the hub itself.
  let pattern: String
  let right: SharedAccessRight
  let handle: Handler
  /// Answers a request whose URL is signed, and which needs no token then; see `SignedURL`.
  var handleSigned: (@Sendable (AzureRequest) async throws -> Answer)?

  init(_ method: HTTPRequest.Method, _ pattern: String, _ right: SharedAccessRight, _ handle: @escaping Handler) {
    (self.method, self.pattern, self.right, self.handle) = (method, pattern, right, handle)
  }

  /// A route whose URLs are signed; with a token it needs the right to manage.
  init(
    signed method: HTTPRequest.Method, _ pattern: String,
    _ handle: @escaping @Sendable (AzureRequest) async throws -> Answer
  ) {
    self.init(method, pattern, .manage) { request, _ in try await handle(request) }
    handleSigned = handle
  }
}
