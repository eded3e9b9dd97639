import FanfareCore
import Registry

/// The registrations of a registry. Templates, tiles and the quarantine are not simulated.
///
/// A value: the same changes in the same order make the same state.
struct RegistryState {
  private struct Place: Hashable {
    let hub: HubName
    let id: RegistrationID
  }

  /// A tag of a hub, byte by byte; nil: all registrations of the hub.
  private struct Tag: Hashable {
    let hub: HubName
    let name: [UInt8]?
  }

  /// An id that is issued and not completed.
  private struct Pending {
    let handle: String?
    var end: UnixTime
  }

  private var registrations: [Place: Registration] = [:]
  private var pending: [Place: Pending] = [:]
  /// The registrations with each tag, by ascending ids.
  private var tagged: [Tag: [RegistrationID]] = [:]
  /// The ids that hold a handle in normal form.
  private var holders: [Tag: RegistrationID] = [:]
  private var installed: [Tag: RegistrationID] = [:]
  var broadcasts: [BroadcastID: BroadcastState] = [:]
  var schedule = ScheduleState()
  /// The end of the reservations of each push quota, in microseconds since 1970.
  private var quotas: [HubName: [Platform: Int64]] = [:]

  // Changes. Ids that may be issued are given, so that a change can be made again elsewhere.

  mutating func issue(_ id: RegistrationID, hub: HubName, handle: String?, at now: UnixTime) -> RegistrationID {
    let forms = handle.map(RegistrationRules.forms(ofHandle:)) ?? []
    let held = forms.compactMap { form -> (id: RegistrationID, since: UnixTime)? in
      guard let holder = holders[Tag(hub: hub, name: Array(form.utf8))] else { return nil }
      if let registration = self[holder, hub] { return (holder, registration.registeredAt) }
      guard let end = pending[Place(hub: hub, id: holder)]?.end, end > now else { return nil }
      return (holder, end + (.zero - RegistrationRules.pendingLifetime))
    }
    let end = now + RegistrationRules.pendingLifetime
    guard let newest = held.max(by: { $0.since < $1.since })?.id else {
      pending[Place(hub: hub, id: id)] = Pending(handle: forms.last, end: end)
      if let form = forms.last { holders[Tag(hub: hub, name: Array(form.utf8))] = id }
      return id
    }
    for (id, _) in held where id != newest { remove(id, hub) }
    pending[Place(hub: hub, id: newest)]?.end = end
    return newest
  }

  mutating func complete(_ request: DeviceRequest, if condition: RegistrationCondition?, at now: UnixTime) throws
    -> Registration
  {
    guard let id = request.id else { throw RegistrationRules.gone }
    let place = Place(hub: request.hub, id: id)
    let stored = registrations[place]
    if let condition {
      guard let stored else { throw RegistrationRules.unknown }
      guard condition(stored) else { throw RegistrationRules.changed }
    }
    guard stored != nil || request.isTrusted || pending[place].map({ $0.end > now }) ?? false else {
      throw RegistrationRules.gone
    }
    return try put(request, id: id, replacing: stored, at: now)
  }

  mutating func install(_ request: DeviceRequest, orAs id: RegistrationID, at now: UnixTime) throws -> Registration {
    let stored = installed[Tag(hub: request.hub, name: request.installation.map { Array($0.utf8) })]
    return try put(request, id: stored ?? id, replacing: stored.flatMap { self[$0, request.hub] }, at: now)
  }

  private mutating func put(
    _ request: DeviceRequest, id: RegistrationID, replacing stored: Registration?, at now: UnixTime
  ) throws -> Registration {
    let next = try RegistrationDraft(request).registration(id, replacing: stored, at: now)
    if !request.isTrusted, let stored {
      guard RegistrationRules.mayReplace(stored, user: next.user, platform: next.platform, handle: next.handle) else {
        throw RegistrationRules.gone
      }
    }
    remove(id, request.hub)
    if let holder = holders[Tag(hub: request.hub, name: Array(next.handle.utf8))] { remove(holder, request.hub) }
    insert(next)
    return next
  }

  mutating func remove(
    _ id: RegistrationID, hub: HubName, user: String, if condition: RegistrationCondition?
  ) throws {
    guard let stored = self[id, hub] else { throw RegistrationRules.unknown }
    guard condition?(stored) ?? true else { throw RegistrationRules.changed }
    guard stored.user.utf8.elementsEqual(user.utf8) else { throw RegistrationRules.unknown }
    remove(id, hub)
  }

  mutating func drop(_ verdicts: [DeadDevice]) -> [RegistrationID] {
    verdicts.compactMap { verdict in
      guard let stored = self[verdict.registration, verdict.hub], stored.handle == verdict.handle,
        verdict.since.map({ stored.registeredAt < $0 }) ?? true
      else { return nil }
      remove(stored.id, stored.hub)
      return stored.id
    }
  }

  mutating func reserve(_ pushes: Int, of quota: PushQuota, at now: UnixTime) -> UnixTime {
    let former = quotas[quota.hub]?[quota.platform] ?? 0
    let (start, end) = quota.reservation(of: pushes, behind: former, at: now)
    quotas[quota.hub, default: [:]][quota.platform] = end
    return UnixTime(microsecondsRoundedUp: start)
  }

  /// Stores a registration whose id and handle no other has.
  mutating func insert(_ registration: Registration) {
    registrations[Place(hub: registration.hub, id: registration.id)] = registration
    holders[Tag(hub: registration.hub, name: Array(registration.handle.utf8))] = registration.id
    if let installation = registration.installation {
      installed[Tag(hub: registration.hub, name: Array(installation.utf8))] = registration.id
    }
    for tag in Self.tags(of: registration) {
      let place = tagged[tag].map { Self.place(of: registration.id, in: $0) } ?? 0
      tagged[tag, default: []].insert(registration.id, at: place)
    }
  }

  private mutating func remove(_ id: RegistrationID, _ hub: HubName) {
    let place = Place(hub: hub, id: id)
    if let handle = pending.removeValue(forKey: place)?.handle { release(handle, of: id, hub) }
    guard let former = registrations.removeValue(forKey: place) else { return }
    release(former.handle, of: id, hub)
    if let installation = former.installation { installed[Tag(hub: hub, name: Array(installation.utf8))] = nil }
    for tag in Self.tags(of: former) {
      guard let ids = tagged[tag] else { continue }
      tagged[tag]?.remove(at: Self.place(of: id, in: ids))
      if ids.count == 1 { tagged[tag] = nil }
    }
  }

  private mutating func release(_ handle: String, of id: RegistrationID, _ hub: HubName) {
    let tag = Tag(hub: hub, name: Array(handle.utf8))
    if holders[tag] == id { holders[tag] = nil }
  }

  private static func tags(of registration: Registration) -> [Tag] {
    [Tag(hub: registration.hub, name: nil)]
      + registration.tags.map { Tag(hub: registration.hub, name: Array($0.utf8)) }
  }

  /// Where the id is among ascending ones, or would be.
  private static func place(of id: RegistrationID, in ids: [RegistrationID]) -> Int {
    var (low, high) = (0, ids.count)
    while low < high {
      let middle = (low + high) / 2
      if ids[middle] < id { low = middle + 1 } else { high = middle }
    }
    return low
  }

  // Questions.

  var hubs: [HubName] { tagged.keys.filter { $0.name == nil }.map(\.hub).sorted { $0.rawValue < $1.rawValue } }

  subscript(id: RegistrationID, hub: HubName) -> Registration? { registrations[Place(hub: hub, id: id)] }

  /// The next devices of an audience in a slice; see `DeviceRegistry.page`.
  func page(_ query: AudienceQuery, _ slice: RegistrationSlice, createdBefore: UnixTime?, limit: Int) -> AudiencePage {
    let ids = candidates(of: query)
    let start = Self.place(of: slice.first, in: ids)
    let examined = ids[start...].prefix(limit).prefix { slice.contains($0) }
    let end = start + examined.count
    let targets = examined.compactMap { id -> Target? in
      guard let found = self[id, query.hub], query.platforms.contains(found.platform),
        createdBefore.map({ found.createdAt <= $0 }) ?? true, Self.belongs(found, to: query.audience)
      else { return nil }
      return Target(
        registration: id, platform: found.platform, handle: found.handle, registeredAt: found.registeredAt)
    }
    let hasMore = examined.count == limit && end < ids.count && slice.contains(ids[end])
    return AudiencePage(targets: targets, examined: examined.count, last: hasMore ? examined.last : nil)
  }

  /// Ascending ids, those of the audience among them.
  private func candidates(of query: AudienceQuery) -> [RegistrationID] {
    switch query.audience {
    case .registration(let id): self[id, query.hub] == nil ? [] : [id]
    case .device(let platform, let handle):
      holders[Tag(hub: query.hub, name: Array(DeviceHandle.normalized(handle, platform: platform).utf8))]
        .map { [$0] } ?? []
    case let audience: tagged[Tag(hub: query.hub, name: audience.tag.map { Array($0.utf8) })] ?? []
    }
  }

  private static func belongs(_ registration: Registration, to audience: Audience) -> Bool {
    func carries(_ tag: String) -> Bool { registration.tags.contains { $0.utf8.elementsEqual(tag.utf8) } }
    return switch audience {
    case .user, .tag, .registration, .everyone: true
    case .device(let platform, _): registration.platform == platform
    case .tags(let tags): tags.contains(where: carries)
    case .expression(let expression): expression.holds(where: carries)
    }
  }
}
