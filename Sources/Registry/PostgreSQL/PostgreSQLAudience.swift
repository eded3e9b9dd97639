import FanfareCore
import Store

/// Answers a batch of audience queries with one round trip per hub, and with some more if it has a large audience.
struct PostgreSQLAudienceLookup {
  /// The devices of the hub `$1` with the tags `$2` (at most `$5`), the handles `$3` or the ids `$4`. Those found by a
  /// tag have the tag, those found by their id the moment of their creation. `= ANY` on an indexed column: the server
  /// searches the index for each key, whatever its statistics of the table say.
  static let statement = PreparedStatement(
    """
    (SELECT tag, platform, registration, handle, registered_at, NULL::bigint FROM tags
      WHERE hub = $1 AND tag = ANY ($2) LIMIT $5)
    UNION ALL
    SELECT NULL, platform, registration, handle, registered_at, NULL::bigint FROM handles
      WHERE hub = $1 AND handle = ANY ($3) AND platform IS NOT NULL
    UNION ALL
    SELECT NULL, platform, id, handle, registered_at, created_at FROM registrations
      WHERE hub = $1 AND id = ANY ($4) AND username IS NOT NULL
    """)

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
  /// The rows of these queries, whose profiles are to be read.
  private var rendered: [(index: Int, row: AudienceRow)] = []

  init(_ queries: [AudienceQuery], weights: TagWeights, templates: TemplateCache, limit: Int) {
    self.queries = queries
    self.weights = weights
    self.templates = templates
    self.limit = max(1, min(limit, 1_000_000_000))
    answers = Array(repeating: [], count: queries.count)
  }

  /// The devices of each query's audience, in the order of the queries.
  consuming func run(_ connection: PostgreSQLConnection) throws -> [AudiencePage] {
    let queries = queries
    try queries.forEachHub { hub, indices in try run(connection, hub, indices) }
    let ends = ends
    return answers.enumerated().map { AudiencePage(targets: $1, examined: $1.count, last: ends[$0]) }
  }

  private mutating func run(_ connection: PostgreSQLConnection, _ hub: HubName, _ batch: [Int]) throws {
    var tags: [ExactText: [Int]] = [:]
    var handles: [ExactText: [Int]] = [:]
    var ids: [RegistrationID: [Int]] = [:]
    tags.reserveCapacity(batch.count)
    let table = RegistrationTable(Session(.postgreSQL(connection)), hub)
    for index in batch {
      let query = queries[index]
      let isRendered = query.template != nil
      let selection = isRendered ? try AudienceSelection(query, templates: templates, in: table) : nil
      selections[index] = selection
      switch query.audience {
      case .device where isRendered, .tags, .expression, .everyone:
        answers[index] = try AudiencePager(
          table, query, selection ?? AudienceSelection(query, templates: templates, in: table), weights: weights
        ).all()
      case .user(let name): tags.add(Tag.usernamePrefix + name, index)
      case .tag(let tag): tags.add(tag, index)
      case .device(let platform, let handle): handles.add(DeviceHandle.normalized(handle, platform: platform), index)
      case .registration(let id): ids[id, default: []].append(index)
      }
    }
    guard !tags.isEmpty || !handles.isEmpty || !ids.isEmpty else { return }
    let keys = Array(tags.keys)
    try collect(connection, hub, keys[...], tags, handles, ids)
    guard !rendered.isEmpty else { return }
    let profiles = try PostgreSQLAudienceTable(connection: connection, hub: hub).profiles(of: rendered.map(\.row.id))
    for (index, row) in rendered {
      // A registration that was removed meanwhile has no entry.
      guard let profile = profiles[row.id], let target = try selections[index]?.target(row, profile: profile) else {
        continue
      }
      answers[index].append(target)
    }
    rendered = []
  }

  /// Reads the rows of these tags, and of the handles and ids. The limit is on the rows of all tags together: each tag
  /// with a limit of its own would be a join, which a sharded database cannot do. If it is reached, the tags are halved
  /// until the large one stands alone.
  private mutating func collect(
    _ connection: PostgreSQLConnection, _ hub: HubName, _ keys: ArraySlice<ExactText>, _ tags: [ExactText: [Int]],
    _ handles: [ExactText: [Int]], _ ids: [RegistrationID: [Int]]
  ) throws {
    // A few devices per tag are usual; one more than the limit shows that there are more.
    let most = keys.count > 1 ? limit + keys.count * 8 : limit + 1
    let rows = try connection.query(
      Self.statement,
      [
        .text(hub.rawValue), .texts(keys.map { $0.text }), .texts(handles.keys.map { $0.text }),
        .ids(Array(ids.keys)), .int8(Int64(most)),
      ])
    let found = (0..<rows.count).reduce(0) { rows.isNull($1, 0) ? $0 : $0 + 1 }
    if keys.count > 1, found >= most {
      let middle = keys.startIndex + keys.count / 2
      try collect(connection, hub, keys[..<middle], tags, handles, ids)
      return try collect(connection, hub, keys[middle...], tags, [:], [:])
    }
    var examined: [ExactText: Int] = [:]
    for row in 0..<rows.count {
      if let tag = try rows.optionalText(row, 0) {
        let key = ExactText(text: tag)
        examined[key, default: 0] += 1
        guard examined[key, default: 0] <= limit else {
          for index in tags[key] ?? [] { ends[index] = try rows.identifier(row, 2) }
          continue
        }
      }
      let candidate = AudienceRow(
        id: try rows.identifier(row, 2), platform: try rows.integer(row, 1), address: try rows.text(row, 3),
        registeredAt: try rows.integer(row, 4))
      let indices: [Int]? =
        if let tag = try rows.optionalText(row, 0) {
          tags[ExactText(text: tag)]
        } else if !rows.isNull(row, 5) {
          ids[candidate.id]
        } else {
          handles[ExactText(text: candidate.address)]
        }
      for index in indices ?? [] where queries[index].rows.contains(candidate.platform) {
        let platform = try Platform(row: candidate.platform)
        switch queries[index].audience {
        case .device(let wanted, _): if wanted != platform { continue }
        case .registration:
          if let moment = queries[index].createdBefore, try rows.integer(row, 5) > moment.milliseconds { continue }
        case .user, .tag, .tags, .expression, .everyone: break
        }
        if let selection = selections[index] {
          if selection.mayContain(platform: candidate.platform, address: candidate.address) {
            rendered.append((index, candidate))
          }
          continue
        }
        answers[index].append(
          Target(
            registration: candidate.id, platform: platform, handle: candidate.address,
            registeredAt: UnixTime(milliseconds: candidate.registeredAt)))
      }
    }
  }
}

/// A text that is compared byte by byte.
private struct ExactText: Hashable {
  let text: String

  static func == (left: Self, right: Self) -> Bool { left.text.hasSameBytes(as: right.text) }

  func hash(into hasher: inout Hasher) {
    let bytes = text.utf8Span.span
    for index in bytes.indices { hasher.combine(bytes[index]) }
  }
}

extension [ExactText: [Int]] {
  /// Adds the index of a query for a key. A key with control characters is skipped: no stored text has any, and
  /// PostgreSQL refuses a NUL.
  fileprivate mutating func add(_ key: String, _ index: Int) {
    if key.isStorable { self[ExactText(text: key), default: []].append(index) }
  }
}

/// A candidate of a page; an issued id, which is of no audience, has no device.
private struct Candidate {
  let id: RegistrationID
  let row: AudienceRow?
  let createdAt: UnixTime
  /// Nil when they were not read.
  var tags: [String]?
}

/// Reads one range of the tags' key for each tag of the plan, in the order of the ids; the server merges the ranges.
/// The condition is checked here, on the tags of the candidates: no statement joins tables, because a sharded database
/// need not have the rows of two tables on the same shard.
struct PostgreSQLAudienceTable {
  let connection: PostgreSQLConnection
  let hub: HubName

  func page(_ plan: AudiencePlan, _ selection: AudienceSelection, _ range: AudienceRange) throws -> AudiencePage {
    var candidates: [Candidate] =
      if case .tags(let tags) = plan.source {
        try candidates(carrying: tags.filter(\.isStorable), range)
      } else {
        try candidates(range, withTags: plan.condition != nil)
      }
    let (examined, last) = (candidates.count, candidates.last?.id)
    candidates.removeAll { candidate in
      guard let row = candidate.row else { return true }
      return !selection.mayContain(platform: row.platform, address: row.address)
        || candidate.createdAt > range.createdBefore
    }
    if let condition = plan.condition {
      try readTags(of: &candidates)
      candidates.removeAll { candidate in
        guard let tags = candidate.tags else { return true }
        return !condition.holds { tag in tags.contains { $0.hasSameBytes(as: tag) } }
      }
    }
    let profiles = try selection.needsProfile ? profiles(of: candidates.map(\.id)) : [:]
    let targets = try candidates.compactMap { candidate -> Target? in
      guard let row = candidate.row, !selection.needsProfile || profiles[row.id] != nil else { return nil }
      return try selection.target(row, profile: profiles[row.id] ?? nil)
    }
    return AudiencePage(targets: targets, examined: examined, upTo: last, of: range)
  }

  /// The stored profiles of those of the registrations that exist.
  fileprivate func profiles(of ids: [RegistrationID]) throws -> [RegistrationID: String?] {
    guard !ids.isEmpty else { return [:] }
    let rows = try connection.query(Self.profilesByID, [.text(hub.rawValue), .ids(ids)])
    var profiles: [RegistrationID: String?] = [:]
    for row in 0..<rows.count {
      profiles.updateValue(try rows.optionalText(row, 1), forKey: try rows.identifier(row, 0))
    }
    return profiles
  }

  /// Estimates the weights with one statement, which reads no more than a sample of each tag.
  func weights(of tags: [String]) throws -> [Int] {
    var weights = tags.map { _ in 0 }
    let known = tags.indices.filter { tags[$0].isStorable }
    guard !known.isEmpty else { return weights }
    let sql = known.indices.map { place in
      """
      SELECT \(known[place]), count(*), (array_agg(registration ORDER BY registration))[\(TagWeights.sample)] FROM
      (SELECT registration FROM tags WHERE hub = $1 AND tag = $\(place + 2)
        ORDER BY registration LIMIT \(TagWeights.sample)) AS s
      """
    }.joined(separator: " UNION ALL ")
    let rows = try connection.execute(sql, [.text(hub.rawValue)] + known.map { .text(tags[$0]) })
    for row in 0..<rows.count {
      let count = Int(try rows.integer(row, 1))
      weights[Int(try rows.integer(row, 0))] =
        rows.isNull(row, 2) ? count : TagWeights.estimate(sampleUpTo: try rows.identifier(row, 2))
    }
    return weights
  }

  func size() throws -> Int {
    let rows = try connection.query(Self.sampleIDs, [.text(hub.rawValue)])
    return rows.isNull(0, 1)
      ? Int(try rows.integer(0, 0)) : TagWeights.estimate(sampleUpTo: try rows.identifier(0, 1))
  }

  private static let sampleIDs = PreparedStatement(
    """
    SELECT count(*), (array_agg(id ORDER BY id))[\(TagWeights.sample)] FROM
    (SELECT id FROM registrations WHERE hub = $1 ORDER BY id LIMIT \(TagWeights.sample)) AS s
    """)

  private func candidates(carrying tags: [String], _ range: AudienceRange) throws -> [Candidate] {
    guard !tags.isEmpty else { return [] }
    let rows = try connection.execute(
      Self.pageStatement(tagCount: tags.count), bounds(range) + tags.map { .text($0) })
    return try (0..<rows.count).map { try candidate(rows, $0) }
  }

  /// Reads the first `$4` registrations of the hub `$1`, from `$2` to `$3`, that carry one of the tags `$5`…, without
  /// duplicates.
  static func pageStatement(tagCount: Int) -> String {
    let ranges = (0..<tagCount).map { index in
      """
      (SELECT registration, platform, handle, registered_at, created_at FROM tags
      WHERE hub = $1 AND tag = $\(index + 5) AND registration >= $2 AND registration <= $3
      ORDER BY registration LIMIT $4)
      """
    }
    guard tagCount > 1 else { return ranges.joined() }
    // Each range is sorted, so the server merges them and reads no more of each than the page needs.
    return """
      SELECT DISTINCT ON (registration) registration, platform, handle, registered_at, created_at
      FROM (\(ranges.joined(separator: " UNION ALL "))) AS t ORDER BY registration LIMIT $4
      """
  }

  private func candidates(_ range: AudienceRange, withTags: Bool) throws -> [Candidate] {
    let rows = try connection.execute(
      """
      SELECT id, platform, handle, registered_at, created_at, \(withTags ? "tags" : "NULL") FROM registrations
      WHERE hub = $1 AND id >= $2 AND id <= $3 ORDER BY id LIMIT $4
      """, bounds(range))
    return try (0..<rows.count).map { row in
      var candidate = try candidate(rows, row)
      if !rows.isNull(row, 5) { candidate.tags = try rows.texts(row, 5) }
      return candidate
    }
  }

  /// Reads the tags of the candidates that lack them. A registration that was removed meanwhile has none.
  private func readTags(of candidates: inout [Candidate]) throws {
    let missing = candidates.filter { $0.tags == nil }.map(\.id)
    guard !missing.isEmpty else { return }
    let rows = try connection.query(Self.tagsByID, [.text(hub.rawValue), .ids(missing)])
    var tags: [RegistrationID: [String]] = [:]
    for row in 0..<rows.count { tags[try rows.identifier(row, 0)] = try rows.texts(row, 1) }
    for index in candidates.indices where candidates[index].tags == nil {
      candidates[index].tags = tags[candidates[index].id]
    }
  }

  private func bounds(_ range: AudienceRange) -> [Parameter] {
    [.text(hub.rawValue), .id(range.slice.first), .id(range.slice.last), .int8(Int64(range.limit))]
  }

  private func candidate(_ rows: ResultRows, _ row: Int) throws -> Candidate {
    let id: RegistrationID = try rows.identifier(row, 0)
    guard let platform = try rows.optionalInteger(row, 1) else {
      return Candidate(id: id, row: nil, createdAt: UnixTime(milliseconds: .max))
    }
    return Candidate(
      id: id,
      row: AudienceRow(
        id: id, platform: platform, address: try rows.text(row, 2), registeredAt: try rows.integer(row, 3)),
      createdAt: UnixTime(milliseconds: try rows.integer(row, 4)))
  }

  private static let profilesByID = PreparedStatement(
    "SELECT id, profile FROM registrations WHERE hub = $1 AND id = ANY ($2) AND username IS NOT NULL")
  private static let tagsByID = PreparedStatement(
    "SELECT id, tags FROM registrations WHERE hub = $1 AND id = ANY ($2) AND username IS NOT NULL")
}

extension ResultRows {
  /// A `uuid` column as an identifier.
  func identifier<Subject>(_ row: Int, _ column: Int32) throws -> Identifier<Subject> {
    let words = try uuid(row, column)
    return Identifier(high: words.high, low: words.low)
  }
}

extension Parameter {
  /// An identifier for a `uuid` column.
  static func id<Subject>(_ id: Identifier<Subject>) -> Self { .uuid(high: id.high, low: id.low) }

  /// Identifiers for a `uuid[]`.
  static func ids<Subject>(_ ids: [Identifier<Subject>]) -> Self { .uuids(ids.map { (high: $0.high, low: $0.low) }) }

  /// A time in Unix milliseconds; nil is NULL.
  static func time(_ time: UnixTime?) -> Self { .int8(time?.milliseconds) }
}
