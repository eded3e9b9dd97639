import FanfareCore

/// What becomes of a line, by the rules of re-registering and by what is registered when its turn comes.
enum ImportJudgement {
  /// It is registered so from now on, in the place of all the others that were looked at.
  case take(Registration)
  /// It is registered exactly so.
  case unchanged
  /// The registry has heard since of what the line would replace.
  case outdated
  /// It may not be taken, for this reason.
  case refused(String)

  /// The id that a line is about: its own, or else that of its installation's registration or of its handle's holder.
  static func id(of line: RegistrationLine, holder: RegistrationID?, installed: RegistrationID?) -> RegistrationID {
    line.isIDGiven ? line.registration.id : installed ?? holder ?? line.registration.id
  }

  /// Judges a line for an id by the registrations that have the id, hold the handle and are the installation's; an id
  /// that is only issued is no registration.
  init(
    _ line: RegistrationLine, id: RegistrationID, stored: Registration?, holder: Registration?, installed: Registration?
  ) {
    let new = line.registration
    func mayReplace(_ other: Registration?) -> Bool {
      other.map { RegistrationRules.mayReplace($0, user: new.user, platform: new.platform, handle: new.handle) } ?? true
    }
    let createdAt =
      line.isCreationGiven
      ? new.createdAt : RegistrationRules.createdAt(by: new.user, replacing: stored, at: new.registeredAt)
    let next = Registration(
      id: id, hub: new.hub, user: new.user, platform: new.platform, handle: new.handle, tags: new.tags,
      installation: new.installation, registeredAt: new.registeredAt, createdAt: createdAt, seenAt: new.seenAt)
    if let stored, stored == next, stored.user.hasSameBytes(as: next.user) {
      self = .unchanged
    } else if [stored, holder, installed].contains(where: { ($0?.seenAt ?? new.seenAt) > new.seenAt }) {
      self = .outdated
    } else if !mayReplace(stored) {
      self = .refused("id belongs to another user's registration, whose handle is another one")
    } else if !mayReplace(installed) {
      self = .refused("installation belongs to another user's registration, whose handle is another one")
    } else {
      self = .take(next)
    }
  }
}
