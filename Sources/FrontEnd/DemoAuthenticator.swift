package import FanfareCore

/// Accepts every user whose password equals the name, as the tutorial apps expect.
/// For demonstrations only.
package struct DemoAuthenticator: Authenticator {
  private let roles: RolePolicy

  /// Throws `.insecureAuthentication` if the server listens on other than loopback addresses.
  /// `allowRemote` permits that.
  package init(boundTo host: String, allowRemote: Bool = false, roles: RolePolicy = RolePolicy()) throws(FrontEndError)
  {
    guard allowRemote || Self.isLoopback(host) else {
      throw FrontEndError(
        .insecureAuthentication,
        "the demo authenticator accepts everybody and must not listen on \(host); "
          + "listen on 127.0.0.1, or allow remote callers explicitly"
      )
    }
    self.roles = roles
  }

  package func authenticate(_ credentials: BasicCredentials, hub: HubName) async throws -> Principal? {
    guard credentials.user == credentials.password else { return nil }
    return Principal(user: credentials.user, roles: roles.roles(of: credentials.user))
  }

  /// Whether the host is in 127.0.0.0/8, or `::1`, or `localhost`.
  private static func isLoopback(_ host: String) -> Bool {
    if host == "::1" || host == "[::1]" || host.lowercased() == "localhost" { return true }
    let parts = host.split(separator: ".", omittingEmptySubsequences: false)
    return parts.count == 4 && parts[0] == "127" && parts.allSatisfy { UInt8($0) != nil }
  }
}
