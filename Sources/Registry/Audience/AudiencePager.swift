import FanfareCore
import Store

/// The range of a page of an audience.
struct AudienceRange {
  let slice: RegistrationSlice
  /// Only registrations created at this moment or before count.
  let createdBefore: UnixTime
  /// The maximum number of candidates examined; at least 1.
  let limit: Int
}

/// Reads the pages of one audience within one transaction, by the plan that suits the audience.
struct AudiencePager {
  private let table: RegistrationTable
  private let selection: AudienceSelection
  private let plan: AudiencePlan

  init(_ table: RegistrationTable, _ query: AudienceQuery, _ selection: AudienceSelection, weights: TagWeights) throws {
    self.table = table
    self.selection = selection
    plan = try AudiencePlan(query, weights: weights) { try table.weights(of: $0) }
  }

  /// The next devices in the slice; see `DeviceRegistry.page`.
  func page(_ range: AudienceRange) throws -> AudiencePage {
    switch plan.source {
    case .registration(let id):
      try page([table.registration(id)].compactMap(\.self), range)
    case .handle(let platform, let handle):
      try page(
        handle.isStorable ? table.registrations(ofHandle: handle).filter { $0.platform == platform } : [], range)
    case .tags(let tags) where tags.isEmpty: AudiencePage(targets: [], examined: 0, last: nil)
    case .tags, .registrations: try table.page(plan, selection, range)
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

  /// A page of a few candidates.
  private func page(_ candidates: [Registration], _ range: AudienceRange) throws -> AudiencePage {
    let examined = candidates.filter { range.slice.contains($0.id) }.sorted { $0.id < $1.id }.prefix(range.limit)
    let targets = try examined.filter { $0.createdAt <= range.createdBefore }.compactMap(selection.target)
    return AudiencePage(targets: targets, examined: examined.count, upTo: examined.last?.id, of: range)
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

/// The reading of audiences has no form that is quick on both engines.
extension RegistrationTable {
  /// Reads the first `limit` candidates of a plan in the slice, by ascending ids, and selects the audience's devices.
  /// The plan's source is `.registrations` or `.tags` with at least one tag.
  func page(_ plan: AudiencePlan, _ selection: AudienceSelection, _ range: AudienceRange) throws -> AudiencePage {
    switch session.engine {
    case .sqlite(let db): try SQLiteAudienceTable(db: db, hub: hub).page(plan, selection, range)
    case .postgreSQL(let connection):
      try PostgreSQLAudienceTable(connection: connection, hub: hub).page(plan, selection, range)
    }
  }

  /// Estimates how many devices carry each of the tags.
  func weights(of tags: [String]) throws -> [Int] {
    switch session.engine {
    case .sqlite(let db): try SQLiteAudienceTable(db: db, hub: hub).weights(of: tags)
    case .postgreSQL(let connection): try PostgreSQLAudienceTable(connection: connection, hub: hub).weights(of: tags)
    }
  }

  /// Estimates how many registrations the hub has.
  func size() throws -> Int {
    switch session.engine {
    case .sqlite(let db): try SQLiteAudienceTable(db: db, hub: hub).size()
    case .postgreSQL(let connection): try PostgreSQLAudienceTable(connection: connection, hub: hub).size()
    }
  }
}
