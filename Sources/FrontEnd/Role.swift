/// What a user may do.
package enum Role: String, CaseIterable, Sendable {
  /// Register own devices and read what was sent to them securely.
  case device
  /// Send.
  case sender
  /// See everybody's sends and devices, and remove devices.
  case `operator`
}

/// Which users of a hub have which roles, where the source of users does not say so itself.
package struct RolePolicy: Hashable, Sendable {
  /// What every authenticated user may do.
  package var everyone: Set<Role>
  /// The users who are operators besides.
  package var operators: Set<String>
  /// Users with roles of their own instead of `everyone`'s.
  package var exceptions: [String: Set<Role>]

  package init(
    everyone: Set<Role> = [.device, .sender], operators: Set<String> = [], exceptions: [String: Set<Role>] = [:]
  ) {
    self.everyone = everyone
    self.operators = operators
    self.exceptions = exceptions
  }

  /// The roles of one user. A name that only looks the same, its letters composed another way, is another user's.
  package func roles(of user: String) -> Set<Role> {
    let roles = exceptions.first { $0.key.utf8.elementsEqual(user.utf8) }?.value ?? everyone
    return operators.contains(where: { $0.utf8.elementsEqual(user.utf8) }) ? roles.union([.operator]) : roles
  }
}
