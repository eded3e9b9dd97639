package import FanfareCore

/// An authenticated user in a hub, and what it may see, control and send.
/// User names are compared by bytes: Unicode-equivalent names are different users.
package struct Caller: Sendable {
  package let user: String
  package let scopes: Set<Scope>
  let hub: HubEntry

  package var hubName: HubName { hub.name }

  /// Whether the user is the caller itself.
  func isNamed(_ user: String) -> Bool { user.utf8.elementsEqual(self.user.utf8) }

  func owns(_ registration: Registration) -> Bool { isNamed(registration.user) }

  func owns(_ report: SendReport) -> Bool { report.sender.map(isNamed) ?? false }

  /// Whether the caller may see a registration: users their own ones, with `read:all` all.
  func maySee(_ registration: Registration) -> Bool {
    scopes.contains(.readAll) || (scopes.contains(.device) && owns(registration))
  }

  /// Whether the caller may see a send: users those they posted, with `read:all` all.
  func maySee(_ report: SendReport) -> Bool { owns(report) || scopes.contains(.readAll) }

  /// Whether the caller may remove a registration, or pause, resume and cancel a send, of others.
  var mayOperate: Bool { scopes.contains(.operate) }

  /// Throws `.forbidden` if the caller has none of the scopes. The refusal names them.
  package func require(anyOf required: [Scope]) throws(Refusal) {
    guard !required.contains(where: scopes.contains) else { return }
    let names = required.map(\.rawValue)
    throw Refusal(
      .forbidden,
      names.count == 1
        ? "this requires the scope \(names[0])" : "this requires one of the scopes \(names.joined(separator: ", "))")
  }

  /// Throws `.forbidden` if a query names another user and the caller may see only its own.
  func requireOwn(_ user: String?) throws(Refusal) {
    guard let user, !isNamed(user), !scopes.contains(.readAll) else { return }
    throw Refusal(.forbidden, "user: another user's name requires the scope \(Scope.readAll.rawValue)")
  }

  /// Throws `.forbidden` if the caller may not send to the audience, or may not give its native payloads.
  func requireScopes(toSend fields: SendFields) throws(Refusal) {
    if let scope = fields.audience?.requiredScope, !scopes.contains(scope) {
      throw Refusal(.forbidden, "to: this audience requires the scope \(scope.rawValue)")
    }
    if !fields.native.isEmpty || !fields.headers.isEmpty, !scopes.contains(.sendNative) {
      throw Refusal(.forbidden, "native: this requires the scope \(Scope.sendNative.rawValue)")
    }
  }
}

extension Audience {
  /// The scope that a sender needs. A user's tag counts as that user.
  var requiredScope: Scope {
    switch self {
    case .user: .sendUser
    case .tag(let tag): Tag.user(of: tag) == nil ? .sendTag : .sendUser
    case .tags: .sendTag
    case .expression, .everyone: .sendBroadcast
    case .registration, .device: .sendDevice
    }
  }
}
