package import FanfareCore

/// Accepts every user whose password equals the name, as the tutorial apps expect.
/// For demonstrations only.
package struct DemoAuthenticator: Authenticator {
  private let policy: ScopePolicy
  private let groups: GroupDirectory?

  /// Throws `.insecureAuthentication` if the server listens on other than loopback addresses.
  /// `allowRemote` permits that.
  package init(
    boundTo host: String, allowRemote: Bool = false, policy: ScopePolicy = ScopePolicy(),
    groups: GroupDirectory? = nil
  ) throws(FrontEndError) {
    guard allowRemote || Self.isLoopback(host) else {
      throw FrontEndError(
        .insecureAuthentication,
        "the demo authenticator accepts everybody and must not listen on \(host); "
          + "listen on 127.0.0.1, or allow remote callers explicitly")
    }
    self.policy = policy
    self.groups = groups
  }

  package var challenge: String { BasicCredentials.challenge }

  package func authenticate(
    _ credentials: Credentials, hub: HubName, from origin: LoginOrigin
  ) async throws -> Principal? {
    guard case .basic(let basic) = credentials, basic.user.utf8.elementsEqual(basic.password.utf8) else { return nil }
    return await policy.principal(basic.user, in: groups, while: { true })
  }

  /// Whether the host is in 127.0.0.0/8, or `::1`, or `localhost`.
  package static func isLoopback(_ host: String) -> Bool {
    if host == "::1" || host == "[::1]" || host.lowercased() == "localhost" { return true }
    let parts = host.split(separator: ".", omittingEmptySubsequences: false)
    return parts.count == 4 && parts[0] == "127" && parts.allSatisfy { UInt8($0) != nil }
  }
}
