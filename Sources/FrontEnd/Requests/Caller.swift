import FanfareCore

/// Who makes a request, in which hub.
struct Caller: Sendable {
  let user: String
  let roles: Set<Role>
  let hub: HubEntry

  /// Whether the send is the caller's own. Names are compared by bytes, as everywhere: two that merely look the same
  /// are two users.
  func posted(_ report: SendReport) -> Bool {
    report.sender.map { $0.utf8.elementsEqual(user.utf8) } ?? false
  }

  /// Whether the registration is the caller's own.
  func owns(_ registration: Registration) -> Bool { registration.user.utf8.elementsEqual(user.utf8) }

  /// Whether the caller may know of the registration: a user of own ones, an operator of all.
  func maySee(_ registration: Registration) -> Bool {
    roles.contains(.operator) || (roles.contains(.device) && owns(registration))
  }
}
