/// A permission of a principal. The raw values are the words of configurations, tokens and keys, and never change.
package enum Scope: String, CaseIterable, Sendable {
  /// Register, see and remove own devices, and read secure payloads.
  case device
  /// Send to one user.
  case sendUser = "send:user"
  /// Send to a tag or to any of several.
  case sendTag = "send:tag"
  /// Send to everyone and to tag expressions.
  case sendBroadcast = "send:broadcast"
  /// Send to a registration or to a handle.
  case sendDevice = "send:device"
  /// Give `native` payloads, in addition to the scope of the audience.
  case sendNative = "send:native"
  /// See the sends and registrations of all users.
  case readAll = "read:all"
  /// Pause, resume and cancel the sends of all users, and remove their devices.
  case operate

  /// The scopes that permit a send to some audience.
  package static let sending: [Scope] = [.sendUser, .sendTag, .sendBroadcast, .sendDevice]

  /// All words, for error messages.
  package static let words = allCases.map(\.rawValue).joined(separator: ", ")
}

/// Assigns scopes to the users of a hub.
package struct ScopePolicy: Hashable, Sendable {
  /// The scopes that every user of the tutorial's apps needs.
  package static let standard: Set<Scope> = [.device, .sendUser]

  /// The scopes of every authenticated user.
  package let everyone: Set<Scope>
  /// Further scopes of single users.
  package let users: [ExactName: Set<Scope>]
  /// Further scopes of the members of groups.
  package let groups: [ExactName: Set<Scope>]

  package init(
    everyone: Set<Scope> = Self.standard, users: [ExactName: Set<Scope>] = [:],
    groups: [ExactName: Set<Scope>] = [:]
  ) {
    self.everyone = everyone
    self.users = users
    self.groups = groups
  }

  /// Returns the scopes of a user who is a member of the groups.
  package func scopes(of user: String, groups memberships: Set<ExactName> = []) -> Set<Scope> {
    var scopes = everyone
    // Most deployments have few grants, or none: no look-up then.
    if !users.isEmpty, let further = users[ExactName(user)] { scopes.formUnion(further) }
    if !groups.isEmpty { for group in memberships { scopes.formUnion(groups[group] ?? []) } }
    return scopes
  }

  /// Returns the principal of a user whose groups a directory has. It is valid while `isValid` returns true and the
  /// directory is unchanged.
  func principal(
    _ user: String, in directory: GroupDirectory?, while isValid: @escaping @Sendable () -> Bool
  ) async -> Principal {
    guard !groups.isEmpty, let directory else {
      return Principal(user: user, scopes: scopes(of: user), validity: Validity(isValid))
    }
    let (memberships, generation) = await directory.groups(of: user)
    return Principal(
      user: user, scopes: scopes(of: user, groups: memberships),
      validity: Validity { isValid() && directory.isCurrent(generation) })
  }
}

/// A name that is compared by bytes: Unicode-equivalent names are different users.
package struct ExactName: Hashable, Sendable, ExpressibleByStringLiteral {
  package let text: String

  package init(_ text: String) { self.text = text }

  package init(stringLiteral text: String) { self.text = text }

  package static func == (left: ExactName, right: ExactName) -> Bool { left.text.utf8.elementsEqual(right.text.utf8) }
}
