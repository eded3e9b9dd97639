import FanfareCore
import Metrics

/// The metric of surplus devices that were removed.
enum SurplusDevices {
  /// Counts devices of a hub. Call it after the commit: a transaction may be repeated, or fail.
  static func count(_ removed: Int, of hub: HubName) {
    guard removed > 0 else { return }
    Counter(label: "fanfare_registrations_surplus_total", dimensions: [("hub", hub.rawValue)]).increment(by: removed)
  }
}

/// The rules of registering, within one transaction.
extension RegistrationTable {
  /// `DeviceRegistry.issue` within the transaction.
  func issue(handle: String?, at now: UnixTime) throws -> RegistrationID {
    let forms = handle.map(RegistrationRules.forms(ofHandle:)) ?? []
    let holders = try holders(of: forms, at: now)
    guard let newest = holders.max(by: { $0.registeredAt < $1.registeredAt }) else {
      // Completing the id takes the registration out of the quarantine.
      for form in forms {
        if let quarantined = try quarantined(.handle(form), at: now), try registration(quarantined.id) == nil {
          return quarantined.id
        }
      }
      let id = RegistrationID.random()
      try insertPending(id, handle: forms.last, at: now)
      return id
    }
    for holder in holders where holder.id != newest.id {
      try remove(holder, leaving: Tombstone(cause: .merged, detail: newest.id.description, at: now))
    }
    if newest.registration == nil { try renewPending(newest.id, at: now) }
    return newest.id
  }

  /// `DeviceRegistry.complete` within the transaction; also returns how many surplus devices it removed.
  func complete(
    _ id: RegistrationID, _ draft: RegistrationDraft, if condition: RegistrationCondition?,
    within limits: RegistrationLimits, at now: UnixTime
  ) throws -> (registration: Registration, surplus: Int) {
    let claim = try claim(id, address: draft.address, at: now)
    if let condition {
      guard let stored = claim.stored?.registration else { throw RegistrationRules.unknown }
      guard condition(stored) else { throw RegistrationRules.changed }
    }
    let quarantined = claim.stored == nil ? try quarantined(.id(id), at: now) : nil
    guard claim.stored != nil || quarantined != nil || draft.isTrusted else { throw RegistrationRules.gone }
    let registration = draft.registration(
      id, replacing: claim.stored?.registration ?? quarantined, keeping: claim.stored?.registration?.heldInstallation,
      at: now
    ).seen(after: claim.stored?.registration)
    guard draft.isTrusted || claim.mayBecome(registration, insteadOf: quarantined) else {
      throw RegistrationRules.gone
    }
    // It may be the id of a removed registration.
    if claim.stored == nil, quarantined == nil { try endQuarantine(of: id) }
    return (registration, try put(registration, in: claim, insteadOf: quarantined, within: limits, at: now))
  }

  /// `DeviceRegistry.install` within the transaction; also returns how many surplus devices it removed.
  func install(
    _ draft: InstallationDraft, within limits: RegistrationLimits, at now: UnixTime
  ) throws -> (registration: Registration, surplus: Int) {
    let installation = draft.installation
    let claim = try claim(installation: installation, handle: draft.native.handle, at: now)
    let quarantined = claim.stored == nil ? try quarantined(.id(claim.id), at: now) : nil
    var registration = draft.native.registration(
      claim.id, replacing: claim.stored?.registration ?? quarantined, at: now
    ).seen(after: claim.stored?.registration)
    guard draft.native.isTrusted || claim.mayBecome(registration, insteadOf: quarantined) else {
      throw RegistryError(.gone, "the installation belongs to another user")
    }
    let parts = try InstallationParts(self, installation, own: claim.id, draft)
    if !parts.isEmpty, registration == claim.stored?.registration { registration = registration.seenLater }
    func make(_ draft: RegistrationDraft, _ stored: Registration?) -> Registration {
      draft.registration(stored?.id ?? .random(), replacing: stored, at: now).seen(after: stored)
    }
    try replace(parts.templates, by: draft.templates, at: now, make: make)
    let surplus = try put(registration, in: claim, insteadOf: quarantined, within: limits, at: now)
    try replace(parts.tiles, by: draft.tiles, at: now, make: make)
    if !draft.templates.isEmpty { try requireFewTemplates(ofHandle: registration.handle) }
    return (registration, surplus)
  }

  /// The id for an installation that has none: that of its quarantined registration, or a new one.
  func idOfNew(installation: String, at now: UnixTime) throws -> RegistrationID {
    guard let quarantined = try quarantined(.installation(installation), at: now),
      try registration(quarantined.id) == nil
    else { return .random() }
    return quarantined.id
  }

  private func put(
    _ registration: Registration, in claim: RegistrationClaim, insteadOf quarantined: Registration?,
    within limits: RegistrationLimits, at now: UnixTime
  ) throws -> Int {
    if let quarantined { try endQuarantine(of: quarantined, at: now) }
    try place(registration, in: claim, at: now)
    guard claim.stored?.registration?.user.hasSameBytes(as: registration.user) != true else { return 0 }
    return try removeSurplus(of: registration.user, keeping: registration, within: limits, at: now)
  }

  /// Stores the registration in its claimed place, and removes what must not stay beside it: what other users have of
  /// the device, and the templates and tiles of an installation whose own registration it replaces.
  func place(_ registration: Registration, in claim: RegistrationClaim, at now: UnixTime) throws {
    let stored = claim.stored?.registration
    let holder = try claim.holder == claim.id ? stored : self.registration(claim.holder)
    try put(registration, in: claim)
    try displace(by: registration, in: claim, former: holder?.user)
    for installation in [stored, holder].compactMap({ $0?.heldInstallation })
    where registration.heldInstallation?.hasSameBytes(as: installation) != true {
      try removeAll(parts(ofInstallation: installation, besides: registration.id), at: now)
    }
  }

  /// Removes the user's devices beyond the limit, the longest unseen first, and quarantines them. Returns how many.
  /// Concurrent registrations of one user do not see each other; the next one removes what they left.
  func removeSurplus(
    of user: String, keeping kept: Registration, within limits: RegistrationLimits, at now: UnixTime
  ) throws -> Int {
    let most = limits.maximumDevicesPerUser
    guard most > 0 else { return 0 }
    let devices = try devices(of: user, most: most)
    guard devices.count > most else { return 0 }
    let unseen = try devices.filter { !$0.key.elementsEqual(kept.handle.utf8) }.map { handle, ids in
      let rows = try registrations(ofHandle: String(decoding: handle, as: UTF8.self))
        .filter { $0.user.hasSameBytes(as: user) }
      return (rows: rows, order: (rows.map(\.seenAt).max() ?? now, ids[0]))
    }.sorted { $0.order < $1.order }
    let surplus = unseen.prefix(min(devices.count - most, RegistrationLimits.surplusBatch))
    for row in surplus.flatMap(\.rows) {
      guard let stored = try findToRemove(row.id, at: now), let registration = stored.registration,
        registration.user.hasSameBytes(as: user)
      else { continue }
      let tombstone = Tombstone(cause: .surplus, detail: kept.id.description, at: now)
      try retire(stored, registration, leaving: tombstone, for: limits.quarantine)
    }
    return surplus.count
  }

  /// `RegistrationDirectory.revise` within the transaction.
  func revise(_ former: Registration, by draft: InstallationDraft, at now: UnixTime) throws -> Registration {
    var next = draft.native.revision(of: former, at: now).seen(after: former)
    guard
      draft.native.isTrusted
        || RegistrationRules.mayReplace(former, user: next.user, platform: next.platform, handle: next.handle)
    else { throw RegistrationRules.gone }
    let claim = try claim(former.id, address: next.handle, at: now)
    guard let stored = claim.stored?.registration else {
      throw RegistryError(.notFound, "there is no such installation")
    }
    guard stored == former else { throw RegistryError(.conflict, "the installation was changed in the meantime") }
    let parts = try InstallationParts(self, draft.installation, own: former.id, draft)
    if !parts.isEmpty, next == stored { next = next.seenLater }
    func make(_ draft: RegistrationDraft, _ stored: Registration?) -> Registration {
      stored.map { draft.revision(of: $0, at: now).seen(after: $0) }
        ?? draft.registration(.random(), replacing: nil, at: now)
    }
    try replace(parts.templates, by: draft.templates, at: now, make: make)
    try place(next, in: claim, at: now)
    try replace(parts.tiles, by: draft.tiles, at: now, make: make)
    if !draft.templates.isEmpty { try requireFewTemplates(ofHandle: next.handle) }
    return next
  }

  /// `DeviceRegistry.remove` within the transaction.
  func remove(
    _ id: RegistrationID, of user: String, if condition: RegistrationCondition?, at now: UnixTime
  ) throws {
    guard let stored = try findToRemove(id, at: now) else {
      // It must not come back from the quarantine.
      guard let quarantined = try quarantined(.id(id), at: now), quarantined.user.hasSameBytes(as: user) else {
        throw RegistrationRules.unknown
      }
      guard condition?(quarantined) ?? true else { throw RegistrationRules.changed }
      try endQuarantine(of: quarantined, at: now)
      if let installation = quarantined.heldInstallation {
        try removeAll(parts(ofInstallation: installation, besides: id), with: id, at: now)
      }
      return
    }
    guard let registration = stored.registration else { throw RegistrationRules.unknown }
    // First: the change may have been to another user.
    guard condition?(registration) ?? true else { throw RegistrationRules.changed }
    guard registration.user.hasSameBytes(as: user) else { throw RegistrationRules.unknown }
    try remove(stored, leaving: Tombstone(cause: .removed, detail: "", at: now))
    if let installation = registration.heldInstallation {
      try removeAll(parts(ofInstallation: installation, besides: id), with: id, at: now)
    }
  }

  /// Removes the device of a registration that `scan` found. Returns nothing when its app has renewed it since.
  func expire(_ id: RegistrationID, seenBefore moment: UnixTime, at now: UnixTime) throws -> [RegistrationID] {
    try removeDevice(of: id, leaving: Tombstone(cause: .expired, detail: "", at: now)) {
      $0.seenAt >= moment && $0.validUntil.map { $0 > now } ?? true
    }
  }

  /// `RegistrationDirectory.list`.
  func list(
    _ audience: Audience, of slice: RegistrationSlice, limit: Int, weights: TagWeights
  ) throws -> RegistrationPage {
    let query = AudienceQuery(hub: hub, audience: audience, platforms: .all)
    let page = try AudiencePager(self, query, .all, weights: weights)
      .page(AudienceRange(slice: slice, createdBefore: UnixTime(milliseconds: .max), limit: max(1, limit)))
    let registrations = try registrations(page.targets.map(\.registration))
    // Without a snapshot, a registration may have changed its user or tags since the page was read.
    return RegistrationPage(registrations: registrations.filter { $0.isStillOf(audience) }, last: page.last)
  }
}

/// The parts that an installation had before a change. Its tiles are replaced after its own registration: a channel may
/// pass from one to the other.
private struct InstallationParts {
  let templates: [Registration]
  let tiles: [Registration]
  /// Whether it had none and has none.
  let isEmpty: Bool

  init(
    _ table: RegistrationTable, _ installation: String, own: RegistrationID, _ draft: InstallationDraft
  ) throws {
    let former = try table.parts(ofInstallation: installation, besides: own)
    templates = former.filter { $0.profile?.tile == nil }
    tiles = former.filter { $0.profile?.tile != nil }
    isEmpty = former.isEmpty && draft.templates.isEmpty && draft.tiles.isEmpty
  }
}

extension Registration {
  /// The registration, seen a millisecond later: so that it differs from the one that had other templates.
  fileprivate var seenLater: Registration { seen(after: seenAt) }

  /// Seen after the different one that it replaces: no later state of a registration equals an earlier one.
  fileprivate func seen(after stored: Registration?) -> Registration {
    guard let stored, stored.seenAt >= seenAt, stored != self else { return self }
    return seen(after: stored.seenAt)
  }

  private func seen(after moment: UnixTime) -> Registration {
    var copy = self
    copy.seenAt = moment + .milliseconds(1)
    return copy
  }

  /// Whether the registration is of the audience, as far as its own user and tags show that.
  fileprivate func isStillOf(_ audience: Audience) -> Bool {
    switch audience {
    case .user(let name): user.hasSameBytes(as: name)
    case .tag(let tag): tags.contains { $0.hasSameBytes(as: tag) }
    default: true
    }
  }
}
