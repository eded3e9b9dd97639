import HTTPTypes
import Hummingbird

/// A route that needs credentials, and the scopes that admit to it.
///
/// This table and `AccessControl` decide what a caller may do. What a scope lets a caller see or steer of others, and
/// which audiences it may send to, is decided by `Caller`.
struct ProtectedRoute: Sendable {
  let method: HTTPRequest.Method
  /// In the router's notation, below a hub's root.
  let path: String
  /// The scopes of which one is required; empty: none is.
  let scopes: [Scope]

  /// Whether a request takes a permit of the quota `reads`. All do that read stores and take no other permit, but those
  /// of POST, of which each is one of few.
  var takesRead: Bool { method.takesRead && path != Self.readPulse.path && path != SessionRoutes.path }

  private init(_ method: HTTPRequest.Method, _ path: String, _ scopes: Scope...) {
    self.init(method, path, anyOf: scopes)
  }

  private init(_ method: HTTPRequest.Method, _ path: String, anyOf scopes: [Scope]) {
    (self.method, self.path, self.scopes) = (method, path, scopes)
  }

  static let register = ProtectedRoute(.post, "api/register", .device)
  static let completeRegistration = ProtectedRoute(.put, "api/register/{id}", .device)
  static let removeOwnRegistration = ProtectedRoute(.delete, "api/register/{id}", .device)
  static let listRegistrations = ProtectedRoute(.get, "api/registrations", .device, .readAll)
  static let readRegistration = ProtectedRoute(.get, "api/registrations/{id}", .device, .readAll)
  static let replaceRegistration = ProtectedRoute(.put, "api/registrations/{id}", .device)
  static let removeRegistration = ProtectedRoute(.delete, "api/registrations/{id}", .device, .operate)
  static let readInstallation = ProtectedRoute(.get, "api/installations/{id}", .device, .readAll)
  static let replaceInstallation = ProtectedRoute(.put, "api/installations/{id}", .device)
  static let patchInstallation = ProtectedRoute(.patch, "api/installations/{id}", .device)
  static let removeInstallation = ProtectedRoute(.delete, "api/installations/{id}", .device, .operate)
  static let notify = ProtectedRoute(.post, "api/notifications", .sendUser)
  static let notifySecurely = ProtectedRoute(.post, "api/notifications/secure", .sendUser)
  static let readSecurePayload = ProtectedRoute(.get, "api/notifications/{id}", .device)
  static let send = ProtectedRoute(.post, "api/sends", anyOf: Scope.sending)
  static let sendBatch = ProtectedRoute(.post, "api/sends/batch", anyOf: Scope.sending)
  // Callers may always see and steer their own sends.
  static let listSends = ProtectedRoute(.get, "api/sends")
  static let reportSend = ProtectedRoute(.get, "api/sends/{id}")
  static let pauseSend = ProtectedRoute(.post, "api/sends/{id}/pause")
  static let resumeSend = ProtectedRoute(.post, "api/sends/{id}/resume")
  static let cancelSend = ProtectedRoute(.post, "api/sends/{id}/cancel")
  static let limitSend = ProtectedRoute(.post, "api/sends/{id}/rate")
  // Those who may redrive letters must see which ones.
  static let listDeadLetters = ProtectedRoute(.get, "api/dead-letters", .readAll, .operate)
  static let readDeadLetter = ProtectedRoute(.get, "api/dead-letters/{id}", .readAll, .operate)
  static let redriveDeadLetters = ProtectedRoute(.post, "api/dead-letters/redrive", .operate)
  static let countTag = ProtectedRoute(.get, "api/tags/{tag}", .readAll)
  static let listTombstones = ProtectedRoute(.get, "api/tombstones", .readAll)

  // Those who change templates must see them.
  static let listTemplates = ProtectedRoute(.get, "api/templates", .readAll, .operate)
  static let readTemplate = ProtectedRoute(.get, "api/templates/{name}", .readAll, .operate)
  static let storeTemplate = ProtectedRoute(.put, "api/templates/{name}", .operate)
  static let removeTemplate = ProtectedRoute(.delete, "api/templates/{name}", .operate)
  static let previewTemplate = ProtectedRoute(.post, "api/templates/{name}/preview", .readAll, .operate)
  static let readPulse = ProtectedRoute(.get, "api/pulse", .readAll, .operate)
  static let readSession = ProtectedRoute(.get, SessionRoutes.path)
  static let endSession = ProtectedRoute(.delete, SessionRoutes.path)

  /// All routes; a test compares them with those of the router.
  static let all = [
    register, completeRegistration, removeOwnRegistration, listRegistrations, readRegistration, replaceRegistration,
    removeRegistration, readInstallation, replaceInstallation, patchInstallation, removeInstallation, notify,
    notifySecurely, readSecurePayload, send, sendBatch, listSends, reportSend, pauseSend, resumeSend, cancelSend,
    limitSend,
    listDeadLetters, readDeadLetter, redriveDeadLetters,
    readPulse, readSession, endSession,
    countTag, listTombstones,
    listTemplates, readTemplate, storeTemplate, removeTemplate, previewTemplate,
  ]
}

extension HTTPRequest.Method {
  /// Whether requests with the method read stores before anything else, or do nothing else.
  var takesRead: Bool { [.get, .head, .delete, .patch].contains(self) }
}

extension RouterMethods<FrontEndContext> {
  /// Adds a route whose handler gets the authenticated caller.
  ///
  /// Callers that are not admitted are refused before the handler runs, and so before the body is read.
  func on(
    _ route: ProtectedRoute, admittedBy access: AccessControl,
    handle: @escaping @Sendable (Request, FrontEndContext, Caller) async throws -> Response
  ) {
    on(RouterPath(route.path), method: route.method) { request, context in
      try await access.handle(request, context, to: route, by: handle)
    }
  }
}
