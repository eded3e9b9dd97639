import FanfareCore
import Hummingbird

/// Where a request is let in: finds the hub that it is for, the user it comes from, and what that user may do.
struct Gate: Sendable {
  private let hubs: [HubName: HubEntry]

  init(hubs: [HubEntry]) {
    self.hubs = Dictionary(uniqueKeysWithValues: hubs.map { ($0.name, $0) })
  }

  /// Lets the request in, in the role that the route asks for; nil: any authenticated user.
  ///
  /// Throws `.notFound` for an unknown hub, `.unauthenticated`, `.forbidden`, and what the authenticator throws when it
  /// cannot answer.
  func admit(_ request: Request, _ context: FrontEndContext, as role: Role?) async throws -> Caller {
    let hub = try hub(named: context.parameters["hub"])
    guard let field = request.headers[.authorization], let credentials = BasicCredentials(field) else {
      throw Refusal(.unauthenticated, "HTTP Basic credentials are required")
    }
    guard let principal = try await hub.authenticator.authenticate(credentials, hub: hub.name) else {
      throw Refusal(.unauthenticated, "the user name or the password is wrong")
    }
    if let role, !principal.roles.contains(role) {
      throw Refusal(.forbidden, "this needs the role \(role.rawValue)")
    }
    return Caller(user: principal.user, roles: principal.roles, hub: hub)
  }

  /// Lets the request in if its user has one of the roles.
  func admit(_ request: Request, _ context: FrontEndContext, asOneOf roles: [Role]) async throws -> Caller {
    let caller = try await admit(request, context, as: nil)
    guard roles.contains(where: caller.roles.contains) else {
      throw Refusal(.forbidden, "this needs the role \(roles.map(\.rawValue).joined(separator: " or "))")
    }
    return caller
  }

  private func hub(named name: Substring?) throws(Refusal) -> HubEntry {
    guard let hub = name.map({ HubName(String($0)) }) ?? .default, let entry = hubs[hub] else {
      throw Refusal(.notFound, "there is no such hub")
    }
    return entry
  }
}
