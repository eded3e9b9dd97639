import FanfareCore
import GRDB

/// Reads pages of one audience on one snapshot, by the key of the tags that lead to its devices.
struct AudiencePager {
  /// How many candidates a page has where the whole audience is asked for.
  private static let wholePage = 5000

  private let db: Database
  private let hub: HubName
  private let platforms: PlatformSet
  private let plan: AudiencePlan

  /// A reader of the query's audience through a connection that is inside a transaction.
  init(_ db: Database, _ query: AudienceQuery, weights: TagWeights) throws {
    self.db = db
    hub = query.hub
    platforms = query.platforms
    plan = try AudiencePlan(query, weights: weights) { try $0.map { try Self.weight(of: $0, hub: query.hub, db) } }
  }

  /// The next devices in the slice; see `DeviceRegistry.page`.
  func page(of slice: RegistrationSlice, createdBefore: UnixTime, limit: Int) throws -> AudiencePage {
    let limit = max(1, limit)
    let table = RegistrationTable(db, hub)
    switch plan.source {
    case .registration(let id):
      return single(
        try slice.contains(id) ? table.find(id)?.registration : nil, of: slice, createdBefore: createdBefore)
    case .handle(let platform, let handle):
      let holder = try handle.isStorable ? table.find(holderOf: handle)?.registration : nil
      return single(holder?.platform == platform ? holder : nil, of: slice, createdBefore: createdBefore)
    case .tags(let tags) where tags.isEmpty: return AudiencePage(targets: [], examined: 0, last: nil)
    case .tags, .registrations: break
    }
    let query = AudiencePageQuery(
      plan, hub: hub, platforms: platforms, of: slice, createdBefore: createdBefore, limit: limit)
    let statement = try query.isUsual ? db.cachedStatement(sql: query.sql) : db.makeStatement(sql: query.sql)
    let rows = try Row.fetchCursor(statement, arguments: query.arguments)
    var (targets, examined, last): ([Target], Int, RegistrationID?) = ([], 0, nil)
    while let row = try rows.next() {
      guard let id = statement.registrationID(at: 0) else { throw StoredRegistration.damaged }
      (examined, last) = (examined + 1, id)
      guard row[4] as Bool else { continue }
      guard let platform = Platform(stored: row[1] as Int64) else { throw StoredRegistration.damaged }
      targets.append(
        Target(registration: id, platform: platform, handle: row[2], registeredAt: UnixTime(milliseconds: row[3])))
    }
    return AudiencePage(targets: targets, examined: examined, last: examined < limit || last == slice.last ? nil : last)
  }

  /// Every device of the audience, by ascending ids.
  func all() throws -> [Target] {
    var targets: [Target] = []
    var slice: RegistrationSlice? = .whole
    while let rest = slice {
      let page = try page(of: rest, createdBefore: UnixTime(milliseconds: .max), limit: Self.wholePage)
      targets += page.targets
      slice = page.last.flatMap(rest.after)
    }
    return targets
  }

  private func single(_ registration: Registration?, of slice: RegistrationSlice, createdBefore: UnixTime)
    -> AudiencePage
  {
    guard let registration, slice.contains(registration.id) else {
      return AudiencePage(targets: [], examined: 0, last: nil)
    }
    let isMeant = platforms.contains(registration.platform) && registration.createdAt <= createdBefore
    return AudiencePage(targets: isMeant ? [Target(registration)] : [], examined: 1, last: nil)
  }

  private static func weight(of tag: String, hub: HubName, _ db: Database) throws -> Int {
    guard tag.isStorable else { return 0 }
    let sql =
      "SELECT registration FROM tags WHERE tag = ? AND hub = ? ORDER BY registration LIMIT 1 OFFSET \(TagWeights.sample - 1)"
    let statement = try db.cachedStatement(sql: sql)
    let rows = try Row.fetchCursor(statement, arguments: [tag, hub.rawValue])
    if try rows.next() != nil {
      guard let id = statement.registrationID(at: 0) else { throw StoredRegistration.damaged }
      return TagWeights.estimate(sampleUpTo: id)
    }
    let count = try db.cachedStatement(sql: "SELECT count(*) FROM tags WHERE tag = ? AND hub = ?")
    return try Int.fetchOne(count, arguments: [tag, hub.rawValue]) ?? 0
  }
}

extension Target {
  /// The registration as a send sees it.
  init(_ registration: Registration) {
    self.init(
      registration: registration.id, platform: registration.platform, handle: registration.handle,
      registeredAt: registration.registeredAt)
  }
}
