import FanfareCore
import Foundation
import GRDB
import Store

/// Answers a batch of audience queries on one snapshot.
///
/// All tags of a batch are bound to one statement as a JSON array, and so are all handles: to start a statement, bind
/// its arguments and open a cursor costs more than the look-up itself.
struct SQLiteAudienceLookup {
  /// The devices that carry the tags of the JSON array `?2` in the hub `?1`. With CROSS JOIN SQLite keeps the order of
  /// the loops: each key of the batch is one search in the index, and the table is never scanned.
  static let byTag = """
    SELECT keys.key, t.platform, t.registration, t.handle, t.registered_at FROM json_each(?2) AS keys
    CROSS JOIN tags AS t ON t.hub = ?1 AND t.tag = keys.value
    """
  /// The same with their profiles, for sends that are rendered from templates.
  static let byTagWithProfile = """
    SELECT keys.key, t.platform, t.registration, t.handle, t.registered_at, r.profile FROM json_each(?2) AS keys
    CROSS JOIN tags AS t ON t.hub = ?1 AND t.tag = keys.value
    CROSS JOIN registrations AS r ON r.hub = ?1 AND r.id = t.registration
    """
  /// The devices that hold the handles of the JSON array `?2` in the hub `?1`.
  static let byHandle = """
    SELECT keys.key, r.platform, r.id, r.handle, r.registered_at FROM json_each(?2) AS keys
    CROSS JOIN registrations AS r ON r.hub = ?1 AND r.handle = keys.value AND r.username IS NOT NULL
    """

  private let queries: [AudienceQuery]
  private let weights: TagWeights
  private let templates: TemplateCache
  /// How many registrations are examined for an audience.
  private let limit: Int
  private var answers: [[Target]]
  /// Of the audiences that may have more devices: the last registration examined.
  private var ends: [Int: RegistrationID] = [:]
  /// Of the queries that name templates.
  private var selections: [Int: AudienceSelection] = [:]

  init(_ queries: [AudienceQuery], weights: TagWeights, templates: TemplateCache, limit: Int) {
    self.queries = queries
    self.weights = weights
    self.templates = templates
    self.limit = max(1, limit)
    answers = Array(repeating: [], count: queries.count)
  }

  /// The devices of each query's audience, in the order of the queries.
  consuming func run(_ db: Database) throws -> [AudiencePage] {
    let queries = queries
    try queries.forEachHub { hub, indices in try run(db, hub, indices) }
    let ends = ends
    return answers.enumerated().map { AudiencePage(targets: $1, examined: $1.count, last: ends[$0]) }
  }

  private mutating func run(_ db: Database, _ hub: HubName, _ indices: [Int]) throws {
    let table = RegistrationTable(Session(.sqlite(db)), hub)
    var tags = KeyList()
    var tagsWithProfile = KeyList()
    var handles = KeyList()
    for index in indices {
      let query = queries[index]
      func selection() throws -> AudienceSelection { try AudienceSelection(query, templates: templates, in: table) }
      switch query.audience {
      case .user, .tag:
        guard let tag = query.audience.tag else { continue }
        if query.template == nil {
          tags.append(tag, for: index)
        } else {
          tagsWithProfile.append(tag, for: index)
          selections[index] = try selection()
        }
      case .device(let platform, let handle) where query.template == nil:
        handles.append(DeviceHandle.normalized(handle, platform: platform), for: index)
      case .registration(let id):
        guard let registration = try table.registration(id),
          query.createdBefore.map({ registration.createdAt <= $0 }) ?? true
        else { continue }
        answers[index] = try selection().target(registration).map { [$0] } ?? []
      case .device, .tags, .expression, .everyone:
        answers[index] = try AudiencePager(table, query, try selection(), weights: weights).all()
      }
    }
    try collect(db, hub, tags, Self.byTag)
    try collect(db, hub, tagsWithProfile, Self.byTagWithProfile)
    try collect(db, hub, handles, Self.byHandle)
  }

  private mutating func collect(_ db: Database, _ hub: HubName, _ keys: KeyList, _ sql: String) throws {
    var first = 0
    while first < keys.indices.count { first = try collect(db, hub, keys, from: first, sql) }
  }

  /// Reads the rows of the keys from `first` on. Returns the first key that is still to be read: the rows come key by
  /// key, and reading ends where a key reaches the limit.
  private mutating func collect(
    _ db: Database, _ hub: HubName, _ keys: KeyList, from first: Int, _ sql: String
  ) throws -> Int {
    let statement = try db.cachedStatement(sql: sql)
    let rows = try GRDB.Row.fetchCursor(statement, arguments: [hub.rawValue, keys.json(from: first)])
    var (last, examined) = (-1, 0)
    while let row = try rows.next() {
      let key = first + (row[0] as Int)
      if key != last { (last, examined) = (key, 0) }
      let index = keys.indices[key]
      if examined == limit {
        ends[index] = try statement.registrationID(at: 2)
        return key + 1
      }
      examined += 1
      if let selection = selections[index] {
        let candidate = AudienceRow(
          id: try statement.registrationID(at: 2), platform: row[1], address: row[3], registeredAt: row[4])
        if let target = try selection.target(candidate, profile: row[5]) {
          answers[index].append(target)
        }
        continue
      }
      let query = queries[index]
      guard query.rows.contains(row[1]) else { continue }
      let platform = try Platform(row: row[1])
      if case .device(let wanted, _) = query.audience, wanted != platform { continue }
      answers[index].append(
        Target(
          registration: try statement.registrationID(at: 2), platform: platform, handle: row[3],
          registeredAt: UnixTime(milliseconds: row[4])))
    }
    return keys.indices.count
  }
}

/// Keys to look up, encoded as a JSON array, and the index of each key's query.
private struct KeyList {
  private(set) var indices: [Int] = []
  private var elements: [UInt8] = []
  /// Where each key begins in `elements`.
  private var starts: [Int] = []

  /// The keys from that one on.
  func json(from key: Int) -> String { "[" + String(decoding: elements[starts[key]...], as: UTF8.self) + "]" }

  /// Adds a key. A key with control characters is skipped: no stored text has any, and SQLite would end the key at a
  /// NUL and find another one.
  mutating func append(_ key: String, for index: Int) {
    guard key.isStorable else { return }
    if !indices.isEmpty { elements.append(UInt8(ascii: ",")) }
    starts.append(elements.count)
    elements.appendJSON(key)
    indices.append(index)
  }
}

/// The statement for one page of an audience: the candidates by ascending ids, each with whether it is of the audience.
///
/// For each tag of the plan one range of the tags' key is read in the order of the ids. SQLite runs the ranges as
/// coroutines and merges them: it neither sorts nor reads beyond the limit. The condition is looked up by key, and only
/// for candidates of the right platform and age.
struct SQLitePageQuery {
  let sql: String
  let arguments: StatementArguments
  /// Whether the statement is one of the few that most pages use, and is cached.
  let isCached: Bool

  /// A page of a plan whose source is `.registrations` or `.tags` with at least one tag.
  init(_ plan: AudiencePlan, _ selection: AudienceSelection, _ range: AudienceRange, hub: HubName) {
    let rows = selection.rows.bits
    let isOfAudience = StoredPlatforms.condition(native: "?5", templates: "?7")
    var values: [(any DatabaseValueConvertible)?] = [
      hub.rawValue, range.slice.first.data, range.slice.last.data, range.limit, rows.native,
      range.createdBefore.milliseconds, rows.templates,
    ]
    /// Adds a tag as an argument. A tag with control characters cannot be stored, and SQLite would end it at a NUL: it
    /// becomes NULL, which equals nothing.
    func bind(_ tag: String) -> String {
      values.append(tag.isStorable ? tag : nil)
      return "?\(values.count)"
    }
    var candidates: String
    if case .tags(let tags) = plan.source {
      candidates = tags.map { tag in
        """
        SELECT registration, platform, handle, registered_at, created_at FROM tags
        WHERE tag = \(bind(tag)) AND hub = ?1 AND registration >= ?2 AND registration <= ?3
        """
      }.joined(separator: "\nUNION ")
      isCached = tags.count == 1 && plan.condition == nil
    } else {
      candidates = """
        SELECT id AS registration, platform, handle, registered_at, created_at FROM registrations
        WHERE hub = ?1 AND id >= ?2 AND id <= ?3
        """
      isCached = plan.condition == nil
    }
    candidates += "\nORDER BY registration LIMIT ?4"
    let condition = plan.condition.map { Self.condition($0, bind) } ?? "1"
    let profile =
      selection.needsProfile
      ? """
      ,
        CASE WHEN \(isOfAudience) THEN (SELECT profile FROM registrations WHERE hub = ?1 AND id = registration) END
      """ : ""
    // An issued id has no platform, so it is of no audience.
    sql = """
      SELECT registration, platform, handle, registered_at,
        CASE WHEN \(isOfAudience) AND created_at <= ?6 THEN \(condition) ELSE 0 END\(profile)
      FROM (\(candidates)) AS candidate
      """
    arguments = StatementArguments(values)
  }

  private static func condition(_ expression: TagExpression, _ bind: (String) -> String) -> String {
    switch expression {
    case .tag(let tag):
      "EXISTS (SELECT 1 FROM tags WHERE tag = \(bind(tag)) AND hub = ?1 AND registration = candidate.registration)"
    case .not(let operand): "NOT \(condition(operand, bind))"
    case .all(let operands): list(operands, "AND", empty: "1", bind)
    case .any(let operands): list(operands, "OR", empty: "0", bind)
    }
  }

  private static func list(
    _ operands: [TagExpression], _ connective: String, empty: String, _ bind: (String) -> String
  ) -> String {
    operands.isEmpty ? empty : "(" + operands.map { condition($0, bind) }.joined(separator: " \(connective) ") + ")"
  }
}

/// The pages and weights of the audiences of one hub.
struct SQLiteAudienceTable {
  let db: Database
  let hub: HubName

  func page(_ plan: AudiencePlan, _ selection: AudienceSelection, _ range: AudienceRange) throws -> AudiencePage {
    let page = SQLitePageQuery(plan, selection, range, hub: hub)
    let statement = try page.isCached ? db.cachedStatement(sql: page.sql) : db.makeStatement(sql: page.sql)
    let rows = try GRDB.Row.fetchCursor(statement, arguments: page.arguments)
    var (targets, examined, last): ([Target], Int, RegistrationID?) = ([], 0, nil)
    while let row = try rows.next() {
      let id = try statement.registrationID(at: 0)
      (examined, last) = (examined + 1, id)
      guard row[4] as Bool else { continue }
      let candidate = AudienceRow(id: id, platform: row[1], address: row[2], registeredAt: row[3])
      if let target = try selection.target(candidate, profile: selection.needsProfile ? row[5] : nil) {
        targets.append(target)
      }
    }
    return AudiencePage(targets: targets, examined: examined, upTo: last, of: range)
  }

  func weights(of tags: [String]) throws -> [Int] { try tags.map(weight(of:)) }

  func size() throws -> Int {
    let sql = "SELECT id FROM registrations WHERE hub = ? ORDER BY id LIMIT 1 OFFSET \(TagWeights.sample - 1)"
    let statement = try db.cachedStatement(sql: sql)
    let rows = try GRDB.Row.fetchCursor(statement, arguments: [hub.rawValue])
    if try rows.next() != nil {
      return TagWeights.estimate(sampleUpTo: try statement.registrationID(at: 0))
    }
    let count = try db.cachedStatement(sql: "SELECT count(*) FROM registrations WHERE hub = ?")
    return try Int.fetchOne(count, arguments: [hub.rawValue]) ?? 0
  }

  private func weight(of tag: String) throws -> Int {
    guard tag.isStorable else { return 0 }
    let sql =
      "SELECT registration FROM tags WHERE tag = ? AND hub = ? ORDER BY registration LIMIT 1 OFFSET \(TagWeights.sample - 1)"
    let statement = try db.cachedStatement(sql: sql)
    let rows = try GRDB.Row.fetchCursor(statement, arguments: [tag, hub.rawValue])
    if try rows.next() != nil {
      return TagWeights.estimate(sampleUpTo: try statement.registrationID(at: 0))
    }
    let count = try db.cachedStatement(sql: "SELECT count(*) FROM tags WHERE tag = ? AND hub = ?")
    return try Int.fetchOne(count, arguments: [tag, hub.rawValue]) ?? 0
  }
}

extension Statement {
  /// The id in a column of a cursor's present row, read in place: a look-up reads one for every device.
  fileprivate func registrationID(at column: Int32) throws -> RegistrationID {
    let words = try uuid(at: column)
    return RegistrationID(high: words.high, low: words.low)
  }
}

extension Identifier {
  /// The 16 bytes, as an argument.
  fileprivate var data: Data { Data(bytes) }
}
