package import FanfareCore
import FoundationEssentials

/// Authenticates the callers of a hub. The front end calls it for every request that needs credentials.
///
/// An implementation must be fast for repeated credentials, and must not block the calling thread.
package protocol Authenticator: Sendable {
  /// Returns the owner of the credentials, or nil if they are wrong.
  /// Throws `AuthenticationError` if they cannot be checked at the moment.
  func authenticate(_ credentials: BasicCredentials, hub: HubName) async throws -> Principal?
}

/// An authenticated user with its roles.
package struct Principal: Hashable, Sendable {
  /// A valid user name (`UserName.isValid`).
  package let user: String
  package let roles: Set<Role>

  package init(user: String, roles: Set<Role>) {
    self.user = user
    self.roles = roles
  }
}

/// Why credentials cannot be checked at the moment.
package enum AuthenticationError: Error, Hashable, Sendable {
  /// Too many checks are waiting.
  case overloaded
  /// The source of users cannot be read.
  case unavailable
}

/// A permission of a user.
package enum Role: String, CaseIterable, Sendable {
  /// Register own devices, and read secure payloads.
  case device
  /// Send.
  case sender
  /// See all sends and devices, and remove devices.
  case `operator`
}

/// Assigns roles to users whose source does not name any.
package struct RolePolicy: Hashable, Sendable {
  /// The roles of every authenticated user.
  package var everyone: Set<Role>
  /// Users who are operators in addition.
  package var operators: Set<String>
  /// Users with other roles than `everyone`.
  package var exceptions: [String: Set<Role>]

  package init(
    everyone: Set<Role> = [.device, .sender], operators: Set<String> = [], exceptions: [String: Set<Role>] = [:]
  ) {
    self.everyone = everyone
    self.operators = operators
    self.exceptions = exceptions
  }

  /// Returns the roles of a user.
  /// Names are compared by bytes: Unicode-equivalent names are different users.
  package func roles(of user: String) -> Set<Role> {
    let roles = exceptions.first { $0.key.utf8.elementsEqual(user.utf8) }?.value ?? everyone
    return operators.contains(where: { $0.utf8.elementsEqual(user.utf8) }) ? roles.union([.operator]) : roles
  }
}

/// The user name and password of HTTP Basic authentication (RFC 7617).
/// Its description contains neither.
package struct BasicCredentials: Hashable, Sendable, CustomStringConvertible {
  /// The most bytes of a password: the limit of `crypt(3)`.
  package static let maximumPasswordLength = 511

  /// A valid user name (`UserName.isValid`).
  package let user: String
  /// UTF-8 without NUL, at most `maximumPasswordLength` bytes.
  package let password: String

  /// Returns nil if the name or the password is invalid.
  package init?(user: String, password: String) {
    guard UserName.isValid(user), password.utf8.count <= Self.maximumPasswordLength, !password.utf8.contains(0) else {
      return nil
    }
    self.user = user
    self.password = password
  }

  /// Parses an `Authorization` field.
  /// Returns nil for another scheme, and for anything but base64 of UTF-8 with a colon.
  package init?(_ authorization: String) {
    // On bytes: every request is parsed here, and characters cost ten times as much.
    let bytes = authorization.utf8
    guard bytes.count > 6, bytes.prefix(6).map({ $0 | 0x20 }).elementsEqual("basic ".utf8),
      let data = Data(base64Encoded: Data(bytes.dropFirst(6).filter { $0 != UInt8(ascii: " ") })),
      let colon = data.firstIndex(of: UInt8(ascii: ":")), let user = String(validating: data[..<colon], as: UTF8.self),
      let password = String(validating: data[data.index(after: colon)...], as: UTF8.self)
    else { return nil }
    self.init(user: user, password: password)
  }

  package var description: String { "Basic credentials" }
}

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
          + "listen on 127.0.0.1, or allow remote callers explicitly")
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
