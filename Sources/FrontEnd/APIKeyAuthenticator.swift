package import FanfareCore
package import Logging

/// Authenticates backends by their API keys, which they send as bearer tokens.
///
/// The keys are in the registry, and are made by `fanfare keys`. A revoked key stops working after at most five
/// seconds.
package struct APIKeyAuthenticator: Authenticator {
  /// Empty: no caller has to be told to use a key.
  package let challenge = ""
  private let keys: APIKeyVerifier
  private let hub: HubName

  /// The store must outlive the authenticator.
  package init(
    hub: HubName, store: any APIKeyStore, clock: any WallClock = SystemWallClock(), logger: Logger
  ) {
    self.hub = hub
    keys = APIKeyVerifier(hub: hub, store: store, clock: clock, logger: logger)
  }

  package func authenticate(
    _ credentials: Credentials, hub: HubName, from origin: LoginOrigin
  ) async throws -> Principal? {
    guard case .bearer(let token) = credentials, token.hasPrefix(APIKey.prefix), hub == self.hub,
      let key = try await keys.verify(token, from: origin.address)
    else { return nil }
    // A later release may know further scopes.
    return Principal(
      user: key.user, scopes: Set(key.scopes.compactMap { Scope(rawValue: $0) }), validity: keys.validity(of: key))
  }
}
