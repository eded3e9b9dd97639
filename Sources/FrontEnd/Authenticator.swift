package import FanfareCore
package import HTTPServer

/// Authenticates the callers of a hub. The front end calls it for every request that needs credentials.
///
/// A hub has a list of authenticators. They are asked in order; the first that returns a principal decides.
/// An implementation must be fast for repeated credentials, and must not block the calling thread.
package protocol Authenticator: Sendable {
  /// The challenge for the `WWW-Authenticate` field of a 401 answer (RFC 9110 §11.6.1): `Basic realm="fanfare"`.
  /// Equal challenges of several authenticators are sent once; empty for credentials that no challenge can ask for.
  var challenge: String { get }

  /// Returns the owner of the credentials, or nil if they are wrong or of a kind that this authenticator does not
  /// check.
  ///
  /// The principal belongs to `hub`: credentials of another hub are wrong. `hub` need not exist.
  /// Throws `AuthenticationError` if the credentials cannot be checked at the moment.
  func authenticate(
    _ credentials: Credentials, hub: HubName, from origin: LoginOrigin
  ) async throws -> Principal?
}

/// Where credentials come from.
package struct LoginOrigin: Sendable {
  package let address: ClientAddress
  /// Whether the user was authenticated at this address lately (`LoginGuard`): it need not wait behind strangers.
  package let isKnown: Bool

  package init(address: ClientAddress, isKnown: Bool = false) {
    self.address = address
    self.isKnown = isKnown
  }
}

/// An authenticated user of the request's hub with its scopes.
package struct Principal: Hashable, Sendable {
  /// A valid user name (`UserName.isValid`).
  package let user: String
  package let scopes: Set<Scope>
  /// Nil: the authenticator must be asked for every request. Does not count in comparisons.
  package let validity: Validity?

  package init(user: String, scopes: Set<Scope>, validity: Validity? = nil) {
    self.user = user
    self.scopes = scopes
    self.validity = validity
  }

  package static func == (left: Self, right: Self) -> Bool { left.user == right.user && left.scopes == right.scopes }

  package func hash(into hasher: inout Hasher) {
    hasher.combine(user)
    hasher.combine(scopes)
  }
}

/// Permits the use of a principal for further requests with the same credentials, while it is valid.
package struct Validity: Sendable {
  private let check: @Sendable () -> Bool

  /// `check` returns whether the authenticator would return the same principal at once. It must not block, and is
  /// called for every request.
  package init(_ check: @escaping @Sendable () -> Bool) { self.check = check }

  var isValid: Bool { check() }
}

/// Why credentials cannot be checked at the moment.
package enum AuthenticationError: Error, Hashable, Sendable {
  /// Too many checks are waiting.
  case overloaded
  /// The source of users or keys cannot be read.
  case unavailable
  /// The token's key may be a new one, and cannot be fetched yet.
  case notFetched
}
