import HTTPServer
import HTTPTypes

/// A route of the front end: what it answers, to whom, and what a request costs.
///
/// The list of routes and `AccessControl` decide what a caller may do. What a scope lets a caller see or control of
/// others, and which audiences it may send to, is decided by `Caller`.
struct Route: Sendable {
  typealias Begin = @Sendable (Exchange, Caller) throws -> Reply

  enum Handler: Sendable {
    /// Needs no credentials.
    case open(@Sendable (Exchange) throws -> Reply)
    /// Runs for an admitted caller, before the body is read. Called on the event loop or by a task: it must not block.
    case admitted(Begin)
  }

  let method: HTTPRequest.Method
  /// A path such as `api/sends/{id}`, below a hub's root.
  let pattern: String
  /// The scopes of which one is required; empty: none is.
  let scopes: [Scope]
  /// Whether a request takes a permit of the quota `reads`. All do that read stores and take no other permit, but those
  /// of POST, of which each is one of few.
  let takesRead: Bool
  /// Whether it belongs to the process: it comes before the routes of other protocols.
  var isOfProcess = false
  /// Whether a request renews the session that it comes with.
  var renewsSession = true
  let handler: Handler

  private init(
    _ method: HTTPRequest.Method, _ pattern: String, _ scopes: [Scope], _ takesRead: Bool, _ handler: Handler
  ) {
    (self.method, self.pattern, self.scopes) = (method, pattern, scopes)
    (self.takesRead, self.handler) = (takesRead, handler)
  }

  /// A route whose answers take time. `takesRead`: by default that of the method.
  init(
    _ method: HTTPRequest.Method, _ pattern: String, _ scopes: [Scope], takesRead: Bool? = nil,
    handle: @escaping @Sendable (Exchange, Caller) async throws -> Answer
  ) {
    self.init(
      method, pattern, scopes, takesRead ?? method.takesRead,
      .admitted { _, caller in .later { exchange in try await handle(exchange, caller) } })
  }

  /// A route that may be answered on the event loop.
  static func direct(
    _ method: HTTPRequest.Method, _ pattern: String, _ scopes: [Scope], begin: @escaping Begin
  ) -> Route {
    Route(method, pattern, scopes, method.takesRead, .admitted(begin))
  }

  /// A route without credentials.
  static func open(
    _ method: HTTPRequest.Method, _ pattern: String, begin: @escaping @Sendable (Exchange) throws -> Reply
  ) -> Route {
    Route(method, pattern, [], false, .open(begin))
  }
}

extension HTTPRequest.Method {
  /// Whether requests with the method read stores before anything else, or do nothing else.
  var takesRead: Bool { [.get, .head, .delete, .patch].contains(self) }
}
