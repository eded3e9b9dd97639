package import FanfareCore

/// How a hub's callers are known. Called by the front end for every request that is not open to everybody.
///
/// An implementation that is asked very often keeps what it found out; one that has to block does so on threads of its
/// own.
package protocol Authenticator: Sendable {
  /// Who the credentials belong to; nil when they are not accepted. Throws `AuthenticationError` when that cannot be
  /// said now.
  func authenticate(_ credentials: BasicCredentials, hub: HubName) async throws -> Principal?
}

/// An authenticated user and what he may do.
package struct Principal: Hashable, Sendable {
  /// A sound user name (`UserName.isValid`).
  package let user: String
  package let roles: Set<Role>

  package init(user: String, roles: Set<Role>) {
    self.user = user
    self.roles = roles
  }
}

/// Why credentials can be neither accepted nor refused now.
package enum AuthenticationError: Error, Hashable, Sendable {
  /// More checks are waiting than may.
  case overloaded
  /// The source of users cannot be read or asked.
  case unavailable
}
