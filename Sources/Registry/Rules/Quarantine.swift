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
  /// In normal form; names a registration without a template, as `installation` does.
  case handle(String)
  case installation(String)
}

/// The rules of the quarantine, once for all stores.
extension RegistrationTable {
  /// Removes the row, and quarantines its registration for a time that is not zero.
  func retire(
    _ stored: StoredRegistration, _ registration: Registration, leaving tombstone: Tombstone, for quarantine: Duration
  ) throws {
    if quarantine > .zero { try self.quarantine(registration, at: tombstone.at, until: tombstone.at + quarantine) }
    try remove(stored, leaving: tombstone)
  }

  /// Removes a device that a push service reported dead, and quarantines it. Returns the registrations that were
  /// removed: none when the report is out of date for one of them.
  func drop(_ device: DeadDevice, within limits: RegistrationLimits, at now: UnixTime) throws -> [RegistrationID] {
    let tombstone = Tombstone(cause: .dead, detail: device.reason, at: now)
    return try removeDevice(of: device.registration, leaving: tombstone, for: limits.quarantine) { registration in
      guard registration.handle.hasSameBytes(as: device.handle) else { return true }
      return device.since.map { registration.registeredAt >= $0 } ?? false
    }
  }

  /// Takes a registration out of the quarantine that its user removes or its app registers again. The templates of an
  /// installation go with it: the app has others now, or none.
  func endQuarantine(of registration: Registration, at now: UnixTime) throws {
    try endQuarantine(of: registration.id)
    guard let installation = registration.heldInstallation else { return }
    for template in try quarantinedTemplates(ofHandle: registration.handle, at: now)
    where template.installation?.hasSameBytes(as: installation) == true {
      try endQuarantine(of: template.id)
    }
  }

  /// Brings a quarantined registration back as it was. Returns false when its id, address or installation is taken.
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
    // The handles of the devices that a trial would have restored, by user.
    var imagined: [[UInt8]: Set<[UInt8]>] = [:]
    for (registration, _) in found where page.platform == nil || page.platform == registration.platform {
      let user = Array(registration.user.utf8)
      let holders = try registrations(ofHandle: registration.handle)
      let isTaken = holders.contains {
        $0.address.hasSameBytes(as: registration.address) || !$0.mayShareDevice(with: registration, former: nil)
      }
      guard try !isTaken && self.registration(registration.id) == nil else {
        taken += 1
        continue
      }
      let handle = Array(registration.handle.utf8)
      let others = imagined[user] ?? []
      let isKnown = others.contains(handle) || holders.contains { $0.user.hasSameBytes(as: registration.user) }
      guard try isKnown || hasRoom(for: registration.user, besides: others.count, within: limits) else {
        surplus += 1
        continue
      }
      guard try isTrial || restore(registration, at: now) else {
        taken += 1
        continue
      }
      restored += 1
      if isTrial { imagined[user, default: []].insert(handle) }
    }
    let last = found.last.map { QuarantinePage.Position(droppedAt: $0.droppedAt, registration: $0.registration.id) }
    return RestoreStep(
      restored: restored, taken: taken, surplus: surplus, last: found.count < page.limit ? nil : last)
  }

  /// Whether the user may have one more device `besides` some: a living device never makes room for a restored one.
  private func hasRoom(for user: String, besides others: Int, within limits: RegistrationLimits) throws -> Bool {
    let most = limits.maximumDevicesPerUser
    return try most == 0 || devices(of: user, most: most).count + others < most
  }
}
