import FanfareCore

/// The range of a page of an audience.
struct AudienceRange {
  let slice: RegistrationSlice
  /// Only registrations created at this moment or before count.
  let createdBefore: UnixTime
  /// The maximum number of candidates examined; at least 1.
  let limit: Int
}

/// Reads the pages of one audience within one transaction, by the plan that suits the audience.
struct AudiencePager<Table: RegistrationTable> {
  private let table: Table
  private let query: AudienceQuery
  private let plan: AudiencePlan

  init(_ table: Table, _ query: AudienceQuery, weights: TagWeights) throws {
    self.table = table
    self.query = query
    plan = try AudiencePlan(query, weights: weights) { try table.weights(of: $0) }
  }

  /// The next devices in the slice; see `DeviceRegistry.page`.
  func page(_ range: AudienceRange) throws -> AudiencePage {
    switch plan.source {
    case .registration(let id):
      single(try range.slice.contains(id) ? table.registration(id) : nil, range)
    case .handle(let platform, let handle):
      single(
        try handle.isStorable
          ? table.registration(holding: handle).flatMap { $0.platform == platform ? $0 : nil } : nil,
        range)
    case .tags(let tags) where tags.isEmpty: AudiencePage(targets: [], examined: 0, last: nil)
    case .tags, .registrations: try table.page(plan, query, range)
    }
  }

  /// Every device of the audience, by ascending ids.
  func all() throws -> [Target] {
    var targets: [Target] = []
    var slice: RegistrationSlice? = .whole
    while let rest = slice {
      let page = try page(AudienceRange(slice: rest, createdBefore: UnixTime(milliseconds: .max), limit: 5000))
      targets += page.targets
      slice = page.last.flatMap(rest.after)
    }
    return targets
  }

  private func single(_ registration: Registration?, _ range: AudienceRange) -> AudiencePage {
    guard let registration, range.slice.contains(registration.id) else {
      return AudiencePage(targets: [], examined: 0, last: nil)
    }
    let isMeant = query.platforms.contains(registration.platform) && registration.createdAt <= range.createdBefore
    return AudiencePage(targets: isMeant ? [Target(registration)] : [], examined: 1, last: nil)
  }
}

extension AudiencePage {
  /// A page that ends at its last candidate, or with the slice.
  init(targets: [Target], examined: Int, upTo last: RegistrationID?, of range: AudienceRange) {
    self.init(
      targets: targets, examined: examined, last: examined < range.limit || last == range.slice.last ? nil : last)
  }
}

extension [AudienceQuery] {
  /// Calls the closure for each hub, nearly always one, with the indices of its queries.
  func forEachHub(_ body: (HubName, [Int]) throws -> Void) rethrows {
    var hubs: [HubName] = []
    for query in self where !hubs.contains(query.hub) { hubs.append(query.hub) }
    for hub in hubs { try body(hub, hubs.count == 1 ? Array<Int>(indices) : indices.filter { self[$0].hub == hub }) }
  }
}

extension Target {
  /// The registration as a push sees it.
  init(_ registration: Registration) {
    self.init(
      registration: registration.id, platform: registration.platform, handle: registration.handle,
      registeredAt: registration.registeredAt)
  }
}

extension Platform {
  /// Reads a stored platform, a bit of `PlatformSet`. Throws `StoredRegistration.damaged` for an unknown one.
  init(stored bit: Int64) throws {
    switch bit {
    case 1: self = .apns
    case 2: self = .fcm
    case 4: self = .wns
    default: throw StoredRegistration.damaged
    }
  }

  /// The bit of `PlatformSet` that is stored.
  var storedBit: Int16 { Int16(PlatformSet(self).rawValue) }
}
