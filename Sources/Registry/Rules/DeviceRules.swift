import FanfareCore

/// The rules for the registrations of one device, once for all stores: one without a template, and one for each of its
/// templates. An installation has one more for each of its tiles, and for each template of these.
extension RegistrationTable {
  /// All registrations of the installation: its own first, then its templates and tiles; see `parts`.
  func registrations(ofInstallation installation: String) throws -> [Registration] {
    let own = try registration(ofInstallation: installation)
    return (own.map { [$0] } ?? []) + (try parts(ofInstallation: installation, besides: own?.id))
  }

  /// The templates by their names, then the tiles by theirs, each before its templates. `own` is the id of the
  /// installation's own registration.
  func parts(ofInstallation installation: String, besides own: RegistrationID?) throws -> [Registration] {
    let rows = try holdings(of: Tag.installationPrefix + installation, limit: TemplateRow.maximum * 4)
    return try registrations(rows.map(\.id).filter { $0 != own }).filter {
      $0.isPart && $0.installation?.hasSameBytes(as: installation) == true
    }.sorted { ($0.profile?.tile ?? "", $0.address) < ($1.profile?.tile ?? "", $1.address) }
  }

  /// Removes what other users have of the device on which the registration was just stored: it belongs to the last user
  /// who logged in on it. `former` is the user whose place the registration took.
  func displace(by new: Registration, in claim: RegistrationClaim, former: String?) throws {
    if let stored = claim.stored?.registration, stored.address.hasSameBytes(as: new.address),
      stored.user.hasSameBytes(as: new.user)
    {
      return
    }
    let all = try registrations(ofHandle: new.handle)
    var templates = 0
    for other in all {
      if !other.mayShareDevice(with: new, former: former) {
        try remove(other, for: new, at: new.registeredAt)
      } else if other.isTemplate {
        templates += 1
      }
    }
    guard !new.isTemplate || templates <= TemplateRow.maximum else { throw TemplateRow.tooMany }
  }

  /// Throws if the device has more templates than allowed, after a change of several.
  func requireFewTemplates(ofHandle handle: String) throws {
    guard try registrations(ofHandle: handle).count(where: \.isTemplate) <= TemplateRow.maximum else {
      throw TemplateRow.tooMany
    }
  }

  /// Removes what other users than the last one have of a device, after an import, whose lines come in any order.
  func settleOwner(ofHandle handle: String, at now: UnixTime) throws {
    // Nearly all handles have one row, which need not be read.
    guard try ids(ofHandle: handle).count > 1, case let all = try registrations(ofHandle: handle), all.count > 1,
      let last = all.max(by: { ($0.registeredAt, $1.isTemplate ? 1 : 0) < ($1.registeredAt, $0.isTemplate ? 1 : 0) })
    else { return }
    for other in all where !other.mayShareDevice(with: last, former: nil) { try remove(other, for: last, at: now) }
  }

  private func remove(_ other: Registration, for new: Registration, at now: UnixTime) throws {
    guard let stored = try findToRemove(other.id, at: now) else { return }
    try remove(stored, leaving: Tombstone(cause: .merged, detail: new.id.description, at: now))
    if let installation = other.heldInstallation {
      try removeAll(parts(ofInstallation: installation, besides: other.id), at: now)
    }
  }

  /// Replaces parts of an installation. `make` makes the registration of a draft from the stored one.
  func replace(
    _ former: [Registration], by drafts: [RegistrationDraft], at now: UnixTime,
    make: (RegistrationDraft, Registration?) -> Registration
  ) throws {
    var former = former
    for draft in drafts {
      let place = former.firstIndex { draft.profile.isSamePart(as: $0.profile) }
      let stored = place.map { former.remove(at: $0) }
      let isTile = draft.profile?.tile != nil
      // A tile may have lost its row to another one that has its former channel now.
      let registration = make(draft, try isTile ? stored.flatMap { try self.registration($0.id) } : stored)
      let claim = try claim(registration.id, address: registration.address, at: now)
      // The channel may have been another user's; the handle of a template is that of a row which was put before.
      if isTile, !registration.isTemplate {
        try self.place(registration, in: claim, at: now)
      } else {
        try put(registration, in: claim)
      }
    }
    try removeAll(former, at: now)
  }

  /// Removes the device of a registration: all registrations of its handle, which are quarantined for a time that is
  /// not zero. Returns those that were removed: none when one of them shows that the device `isAlive`.
  func removeDevice(
    of id: RegistrationID, leaving tombstone: Tombstone, for quarantine: Duration = .zero,
    isAlive: (Registration) -> Bool
  ) throws -> [RegistrationID] {
    guard let handle = try findToRemove(id, at: tombstone.at)?.registration?.handle else { return [] }
    let all = try registrations(ofHandle: handle)
    guard !all.contains(where: isAlive) else { return [] }
    var removed: [RegistrationID] = []
    for one in all {
      // Only now locked: its app may have registered it again.
      guard let stored = try findToRemove(one.id, at: tombstone.at), let registration = stored.registration,
        registration.handle.hasSameBytes(as: handle), !isAlive(registration)
      else { continue }
      try retire(stored, registration, leaving: tombstone, for: quarantine)
      removed.append(stored.id)
    }
    return removed
  }

  /// Removes registrations as their user would; `whole` is that of the installation that they are parts of, if it is
  /// removed too.
  func removeAll(_ registrations: [Registration], with whole: RegistrationID? = nil, at now: UnixTime) throws {
    for registration in registrations {
      guard let stored = try findToRemove(registration.id, at: now) else { continue }
      try remove(stored, leaving: Tombstone(cause: .removed, detail: whole?.description ?? "", at: now))
    }
  }

  /// The number of the user's devices, as far as it is known from `limit` registrations.
  func deviceCount(of user: String, limit: Int) throws -> Int {
    Set(try holdings(of: Tag.username(user), limit: limit).map { Array($0.handle.utf8) }).count
  }

  /// The user's registrations by device, as many as are needed to see whether there are more devices than `most`.
  func devices(of user: String, most: Int) throws -> [[UInt8]: [RegistrationID]] {
    // Bounded: a user who had many more before there was a limit loses them little by little.
    let rows = try holdings(of: Tag.username(user), limit: (most + RegistrationLimits.surplusBatch) * 8)
    return Dictionary(grouping: rows) { Array($0.handle.utf8) }.mapValues { $0.map(\.id) }
  }
}

/// A row of a tag.
struct Holding {
  let id: RegistrationID
  let handle: String

  init(_ id: RegistrationID, address: String) { (self.id, handle) = (id, TemplateRow.handle(in: address)) }
}

extension DeviceProfile? {
  /// Whether both are of the tile and template of the same names.
  fileprivate func isSamePart(as other: DeviceProfile?) -> Bool {
    func isSame(_ left: String?, _ right: String?) -> Bool {
      guard let left, let right else { return left == nil && right == nil }
      return left.hasSameBytes(as: right)
    }
    return isSame(self?.tile, other?.tile) && isSame(self?.template?.name, other?.template?.name)
  }
}

extension Registration {
  /// Whether no user has logged in.
  private var isAnonymous: Bool { UserName.isOfDevice(user) }

  /// Whether the new registration of the same device lets this one stay. One without a user only takes the place of
  /// the `former` user.
  func mayShareDevice(with new: Registration, former: String?) -> Bool {
    if id == new.id || user.hasSameBytes(as: new.user) || isAnonymous { return true }
    return new.isAnonymous && former.map { !user.hasSameBytes(as: $0) } ?? true
  }
}
