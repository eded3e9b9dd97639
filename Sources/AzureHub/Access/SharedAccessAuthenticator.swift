package import FanfareCore
package import FrontEnd
package import Logging

/// Authenticates callers of a hub by shared access signatures.
///
/// The user of a caller is `sas/` and the rule's name, or `sas/namespace/` and the name of a rule for all hubs. Such a
/// user owns no devices: its scopes are those of its rights, and the routes of Azure's protocol act for all users.
package struct SharedAccessAuthenticator: Authenticator {
  private static let userPrefix = "sas/"
  private static let namespacePrefix = "sas/namespace/"

  /// Empty: routes of another protocol answer in their own way.
  package let challenge = ""
  private let hub: HubName
  private let own: SharedAccessFile?
  private let namespace: SharedAccessFile?
  private let hosts: [String]
  private let clock: any WallClock

  /// `own` are the rules of the hub, `namespace` those of all hubs. `hosts` are further names of the server.
  package init(
    hub: HubName, own: SharedAccessFile?, namespace: SharedAccessFile?, hosts: [String], clock: any WallClock
  ) {
    (self.hub, self.own, self.namespace, self.hosts, self.clock) = (hub, own, namespace, hosts, clock)
  }

  package func authenticate(
    _ credentials: Credentials, hub: HubName, from origin: LoginOrigin
  ) async throws -> Principal? {
    guard case .signature(let signed) = credentials, hub == self.hub, let token = SharedAccessToken(signed.token),
      token.expiry > clock.now(), token.covers(host: signed.host, path: signed.path, names: hosts)
    else { return nil }
    for (file, prefix) in [(own, Self.userPrefix), (namespace, Self.namespacePrefix)] {
      guard let rule = await file?.rule(thatSigned: token) else { continue }
      return Principal(user: prefix + rule.name, scopes: rule.scopes)
    }
    return nil
  }

  /// Whether the caller has a rule for all hubs.
  static func isOfNamespace(_ caller: Caller) -> Bool { caller.user.hasPrefix(namespacePrefix) }
}

/// A file of `SharedAccessRules`. It is read again when it changes; see `WatchedFile`.
package final class SharedAccessFile: Sendable {
  /// The most bytes of a file.
  private static let maximumSize = 1024 * 1024

  private let file: WatchedFile<SharedAccessRules>

  /// Reads the file with `read`, whose errors contain no secrets.
  package init(
    path: String, now: @escaping @Sendable () -> ContinuousClock.Instant = { .now }, logger: Logger,
    read: @escaping @Sendable (_ path: String) throws(FrontEndError) -> String
  ) throws(FrontEndError) {
    file = try WatchedFile(
      path: path, name: "File of shared access rules", interval: .seconds(1), now: now, logger: logger
    ) { path, _ throws(FrontEndError) in
      let text = try read(path)
      guard text.utf8.count <= Self.maximumSize else {
        throw FrontEndError(.configuration, "the file of shared access rules has more than \(Self.maximumSize) bytes")
      }
      return try SharedAccessRules(parsing: text)
    }
  }

  /// The rule of the token's name, if one of its keys signed the token; nil otherwise.
  fileprivate func rule(thatSigned token: SharedAccessToken) async -> SharedAccessRule? {
    let rules = await file.latest().content.rules
    // Names are no secrets, but of an unknown one a key is tried as well, so that answers take the same time.
    guard let rule = rules.first(where: { $0.name == token.keyName }) else {
      _ = token.isSigned(with: rules.first?.keys.first ?? "")
      return nil
    }
    return rule.keys.contains(where: token.isSigned) ? rule : nil
  }
}
