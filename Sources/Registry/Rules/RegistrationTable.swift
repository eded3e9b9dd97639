import FanfareCore
import Metrics

/// The registrations of one hub within one transaction: the seam between the rules of registering and a store's SQL.
///
/// Each store implements the requirements with statements only; the extension has the rules, once for all stores. Where
/// the store has row locks, the rows that `claim`, `holders` and `findToRemove` return stay locked until the
/// transaction ends. The methods throw the store's own errors, and `RegistryError` where a rule forbids the change.
protocol RegistrationTable {
  var hub: HubName { get }

  /// The registration with the id, without a lock.
  func registration(_ id: RegistrationID) throws -> Registration?
  /// The registrations that hold the handle (in normal form), with and without a template, without a lock.
  func registrations(ofHandle handle: String) throws -> [Registration]
  /// The registration that holds the address, without a lock.
  func registration(holding address: String) throws -> Registration?
  /// The registration of the installation without a template, without a lock.
  func registration(ofInstallation installation: String) throws -> Registration?
  /// Those of the registrations that exist, by ascending ids, without a lock.
  func registrations(_ ids: [RegistrationID]) throws -> [Registration]

  /// The unexpired rows without a template that hold one of the handles, without duplicates.
  func holders(of handles: [String], at now: UnixTime) throws -> [StoredRegistration]
  /// Claims the address for the registration with the id, and finds its unexpired row.
  func claim(_ id: RegistrationID, address: String, at now: UnixTime) throws -> RegistrationClaim
  /// Claims the installation and the handle, for the installation's registration or for a new id.
  func claim(installation: String, handle: String, at now: UnixTime) throws -> RegistrationClaim
  /// The unexpired row with the id, with everything locked that `remove` changes.
  func findToRemove(_ id: RegistrationID, at now: UnixTime) throws -> StoredRegistration?

  /// Stores a new issued id. No live row may hold the handle, if one is given.
  func insertPending(_ id: RegistrationID, handle: String?, at now: UnixTime) throws
  /// Restarts the lifetime of an issued id.
  func renewPending(_ id: RegistrationID, at now: UnixTime) throws
  /// Stores the registration in its claimed place. A former holder of the handle is removed with a tombstone.
  func put(_ registration: Registration, in claim: RegistrationClaim) throws
  /// Removes the row and everything that belongs to it, and leaves a tombstone.
  func remove(_ stored: StoredRegistration, leaving tombstone: Tombstone) throws
  /// The first `limit` registrations with the tag, by ascending ids, without a lock.
  func holdings(of tag: String, limit: Int) throws -> [Holding]
  /// The first `limit` tags in use that begin with the prefix, by ascending bytes.
  func tags(withPrefix prefix: String, limit: Int) throws -> [String]
  /// A version of the hub's template, or the newest one.
  func template(_ name: String, version: Int?) throws -> HubTemplate?

  /// The quarantined registration that the key names, without a lock.
  func quarantined(_ key: QuarantineKey, at now: UnixTime) throws -> Registration?
  /// The quarantined registrations with a template that have the handle (in normal form), without a lock.
  func quarantinedTemplates(ofHandle handle: String, at now: UnixTime) throws -> [Registration]
  /// Stores a copy of the registration in the quarantine.
  func quarantine(_ registration: Registration, at now: UnixTime, until end: UnixTime) throws
  /// Deletes the quarantined registration and the tombstone of its id.
  func endQuarantine(of id: RegistrationID) throws
  /// Claims the id, address and installation of the registration; nil when any of them is taken.
  func claimVacant(_ registration: Registration, at now: UnixTime) throws -> RegistrationClaim?

  /// Reads the first `limit` candidates of a plan in the slice, by ascending ids, and selects the audience's devices.
  /// The plan's source is `.registrations` or `.tags` with at least one tag.
  func page(_ plan: AudiencePlan, _ selection: AudienceSelection, _ range: AudienceRange) throws -> AudiencePage
  /// Estimates how many devices carry each of the tags.
  func weights(of tags: [String]) throws -> [Int]
  /// Estimates how many registrations the hub has.
  func size() throws -> Int
  /// Looks through the first `limit` registrations of the slice for those last seen before the moment, and those whose
  /// validity has ended; without a lock.
  func scan(seenBefore moment: UnixTime, of slice: RegistrationSlice, limit: Int, at now: UnixTime) throws -> ExpiryScan
}

/// The metric of surplus devices that were removed.
enum SurplusDevices {
  /// Counts devices of a hub. Call it after the commit: a transaction may be repeated, or fail.
  static func count(_ removed: Int, of hub: HubName) {
    guard removed > 0 else { return }
    Counter(label: "fanfare_registrations_surplus_total", dimensions: [("hub", hub.rawValue)]).increment(by: removed)
  }
}

/// A row of the table of registrations: a registration, or an issued id that has not been completed.
struct StoredRegistration {
  let id: RegistrationID
  /// The address (``FanfareCore/Registration/address``); an issued id has one if a handle was given when it was issued.
  let handle: String?
  /// When the id was issued or the app last reported its handle.
  let registeredAt: UnixTime
  /// The end of an issued id's lifetime; nil for a registration.
  let expiresAt: UnixTime?
  /// Nil for an issued id.
  let registration: Registration?

  /// Thrown for a row that no release can have written.
  static let damaged = RegistryError(.unavailable, "the registry has a row that it cannot read")

  /// Whether the rules of ownership allow the new registration to replace this row.
  func mayBeReplaced(by new: Registration) -> Bool {
    guard let registration else { return true }
    return RegistrationRules.mayReplace(registration, user: new.user, platform: new.platform, handle: new.handle)
  }

  /// Whether the row counts at the moment. Rows count without a moment given, until they are purged.
  func isLive(at now: UnixTime?) -> Bool {
    guard let now, let expiresAt else { return true }
    return expiresAt > now
  }
}

/// A place claimed for a registration: its id, the row with that id, and the present holder of its handle.
struct RegistrationClaim {
  let id: RegistrationID
  /// Nil for a new id.
  let stored: StoredRegistration?
  /// The id of the row that holds the handle; equal to `id` when no other row does.
  let holder: RegistrationID
}

extension RegistrationClaim {
  /// Whether the rules of ownership allow the new registration in the place; `quarantined` was there before.
  func mayBecome(_ new: Registration, insteadOf quarantined: Registration?) -> Bool {
    if let stored { return stored.mayBeReplaced(by: new) }
    return quarantined.map {
      RegistrationRules.mayReplace($0, user: new.user, platform: new.platform, handle: new.handle)
    } ?? true
  }
}

/// The result of one step of looking for registrations that have not been seen for long.
struct ExpiryScan {
  let stale: [RegistrationID]
  /// The last registration examined; nil at the end of the slice.
  let last: RegistrationID?

  /// Reads rows of an id and whether it is stale, by ascending ids.
  init(of slice: RegistrationSlice, limit: Int, next: () throws -> (id: RegistrationID, isStale: Bool)?) rethrows {
    var (examined, last, stale): (Int, RegistrationID?, [RegistrationID]) = (0, nil, [])
    while let row = try next() {
      (examined, last) = (examined + 1, row.id)
      if row.isStale { stale.append(row.id) }
    }
    self.stale = stale
    self.last = examined < limit || last == slice.last ? nil : last
  }
}

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
    _ installation: String, _ draft: InstallationDraft, within limits: RegistrationLimits, at now: UnixTime
  ) throws -> (registration: Registration, surplus: Int) {
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
    let installation = next.installation ?? ""
    let parts = try InstallationParts(self, installation, own: former.id, draft)
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
    _ table: some RegistrationTable, _ installation: String, own: RegistrationID, _ draft: InstallationDraft
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
    Registration(
      id: id, hub: hub, user: user, platform: platform, handle: handle, tags: tags, installation: installation,
      registeredAt: registeredAt, createdAt: createdAt, seenAt: moment + .milliseconds(1), profile: profile,
      validUntil: validUntil)
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
