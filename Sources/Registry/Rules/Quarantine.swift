import FanfareCore

extension QuarantinePage.Position {
  /// The position before all registrations that were dropped at the moment or later.
  static func before(_ moment: UnixTime) -> Self {
    Self(droppedAt: moment + .milliseconds(-1), registration: RegistrationSlice.whole.last)
  }
}

/// What names a quarantined registration.
enum QuarantineKey {
  case id(RegistrationID)
  /// In normal form.
  case handle(String)
  case installation(String)
}

/// The rules of the quarantine, once for all stores.
extension RegistrationTable {
  /// Removes the row and quarantines its registration.
  func retire(
    _ stored: StoredRegistration, _ registration: Registration, leaving tombstone: Tombstone,
    within limits: RegistrationLimits
  ) throws {
    if limits.quarantine > .zero {
      try quarantine(registration, at: tombstone.at, until: tombstone.at + limits.quarantine)
    }
    try remove(stored, leaving: tombstone)
  }

  /// Removes a device that a push service reported dead, and quarantines its registration. Returns nil when the report
  /// is out of date.
  func drop(_ device: DeadDevice, within limits: RegistrationLimits, at now: UnixTime) throws -> RegistrationID? {
    guard let stored = try findToRemove(device.registration, at: now), let registration = stored.registration,
      registration.handle.hasSameBytes(as: device.handle),
      device.since.map({ registration.registeredAt < $0 }) ?? true
    else { return nil }
    try retire(
      stored, registration, leaving: Tombstone(cause: .dead, detail: device.reason, at: now), within: limits)
    return stored.id
  }

  /// Brings a quarantined registration back as it was. Returns false when its id, handle or installation is taken.
  private func restore(_ registration: Registration, at now: UnixTime) throws -> Bool {
    guard let claim = try claimVacant(registration, at: now) else { return false }
    try endQuarantine(of: registration.id)
    try put(registration, in: claim)
    return true
  }

  /// `QuarantineStore.restore` within the transaction, with the registrations of the page and when each was dropped.
  func restore(
    _ found: [(registration: Registration, droppedAt: UnixTime)], of page: QuarantinePage, isTrial: Bool,
    within limits: RegistrationLimits, at now: UnixTime
  ) throws -> RestoreStep {
    var (restored, taken, surplus) = (0, 0, 0)
    // What a trial would have restored, by user.
    var imagined: [[UInt8]: Int] = [:]
    for (registration, _) in found where page.platform == nil || page.platform == registration.platform {
      let user = Array(registration.user.utf8)
      guard try self.registration(registration.id) == nil, try self.registration(holding: registration.handle) == nil
      else {
        taken += 1
        continue
      }
      guard try hasRoom(for: registration.user, besides: imagined[user] ?? 0, within: limits) else {
        surplus += 1
        continue
      }
      guard try isTrial || restore(registration, at: now) else {
        taken += 1
        continue
      }
      restored += 1
      if isTrial { imagined[user, default: 0] += 1 }
    }
    let last = found.last.map { QuarantinePage.Position(droppedAt: $0.droppedAt, registration: $0.registration.id) }
    return RestoreStep(
      restored: restored, taken: taken, surplus: surplus, last: found.count < page.limit ? nil : last)
  }

  /// Whether the user may have one more device `besides` some: a living device never makes room for a restored one.
  private func hasRoom(for user: String, besides others: Int, within limits: RegistrationLimits) throws -> Bool {
    let most = limits.maximumDevicesPerUser
    return try most == 0 || registrations(of: user, limit: most).count + others < most
  }
}
