import FanfareCore
package import Hummingbird

/// Finds a request's hub and caller, and checks the caller's role.
/// Every route that needs credentials calls it first.
struct AccessControl: Sendable {
  private let hubs: [HubName: HubEntry]

  init(hubs: [HubEntry]) { self.hubs = Dictionary(uniqueKeysWithValues: hubs.map { ($0.name, $0) }) }

  /// Returns the caller if it has one of the roles; without roles, any authenticated user.
  ///
  /// Throws `.notFound` for an unknown hub, `.unauthenticated`, `.forbidden`, and the errors of the authenticator.
  func admit(_ request: Request, _ context: FrontEndContext, as roles: Role...) async throws -> Caller {
    let hub = try hub(named: context.parameters["hub"])
    guard let field = request.headers[.authorization], let credentials = BasicCredentials(field) else {
      throw Refusal(.unauthenticated, "HTTP Basic credentials are required")
    }
    guard let principal = try await hub.authenticator.authenticate(credentials, hub: hub.name) else {
      throw Refusal(.unauthenticated, "the user name or the password is wrong")
    }
    guard roles.isEmpty || roles.contains(where: principal.roles.contains) else {
      throw Refusal(.forbidden, "this requires the role \(roles.map(\.rawValue).joined(separator: " or "))")
    }
    return Caller(user: principal.user, roles: principal.roles, hub: hub)
  }

  private func hub(named name: Substring?) throws(Refusal) -> HubEntry {
    guard let hub = name.map({ HubName(String($0)) }) ?? .default, let entry = hubs[hub] else {
      throw Refusal(.notFound, "there is no such hub")
    }
    return entry
  }
}

/// An authenticated user in a hub.
/// User names are compared by bytes: Unicode-equivalent names are different users.
struct Caller: Sendable {
  let user: String
  let roles: Set<Role>
  let hub: HubEntry

  var isOperator: Bool { roles.contains(.operator) }

  func owns(_ registration: Registration) -> Bool { registration.user.utf8.elementsEqual(user.utf8) }

  /// Whether the caller may see the registration: a user its own ones, an operator all.
  func maySee(_ registration: Registration) -> Bool {
    isOperator || (roles.contains(.device) && owns(registration))
  }

  /// Whether the caller may see the send: a user those it posted, an operator all.
  func maySee(_ report: SendReport) -> Bool {
    isOperator || report.sender.map { $0.utf8.elementsEqual(user.utf8) } ?? false
  }
}

/// The context of one request: its parameters, logger and id.
package struct FrontEndContext: RequestContext {
  package var coreContext: CoreRequestContextStorage
  /// Set by `AnswerMiddleware`; empty before.
  package var requestID = ""

  package init(source: ApplicationRequestContextSource) {
    coreContext = CoreRequestContextStorage(source: source)
  }
}
