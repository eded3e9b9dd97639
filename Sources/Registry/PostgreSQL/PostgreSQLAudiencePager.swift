import FanfareCore
import PostgreSQL

/// Reads pages of one audience, by the key of the tags that lead to its devices.
///
/// For each tag that drives, one range of the tags' key is read in the order of the ids, and the server merges the
/// ranges up to the limit. What else the audience asks of a candidate is judged here, by the tags that its registration
/// holds: so no statement joins tables, which could not be sharded alike.
struct PostgreSQLAudiencePager {
  /// How many candidates a page has where the whole audience is asked for.
  private static let wholePage = 5000

  /// What is known of a candidate; of an issued id that waits, which is of no audience, no device.
  private struct Candidate {
    let id: RegistrationID
    let target: Target?
    let createdAt: UnixTime
    /// Nil where they have not been read.
    var tags: [String]?
  }

  private let connection: PostgreSQLConnection
  private let hub: HubName
  private let platforms: PlatformSet
  private let plan: AudiencePlan

  /// A reader of the query's audience.
  init(_ connection: PostgreSQLConnection, _ query: AudienceQuery, weights: TagWeights) throws {
    self.connection = connection
    hub = query.hub
    platforms = query.platforms
    plan = try AudiencePlan(query, weights: weights) { try Self.weights(of: $0, hub: query.hub, connection) }
  }

  /// The next devices in the slice; see `DeviceRegistry.page`.
  func page(of slice: RegistrationSlice, createdBefore: UnixTime, limit: Int) throws -> AudiencePage {
    let limit = max(1, limit)
    let table = PostgreSQLRegistrationTable(connection, hub)
    var candidates: [Candidate]
    switch plan.source {
    case .registration(let id):
      return single(
        try slice.contains(id) ? table.find(id, locking: false)?.registration : nil, createdBefore: createdBefore)
    case .handle(let platform, let handle):
      let holder = try handle.isStorable ? table.registration(holding: handle) : nil
      return single(
        holder.flatMap { $0.platform == platform && slice.contains($0.id) ? $0 : nil }, createdBefore: createdBefore)
    case .tags(let tags): candidates = try read(tags.filter(\.isStorable), slice, limit)
    case .registrations: candidates = try readAll(slice, limit)
    }
    let last = candidates.last?.id
    let examined = candidates.count
    candidates.removeAll { candidate in
      guard let target = candidate.target else { return true }
      return !platforms.contains(target.platform) || candidate.createdAt > createdBefore
    }
    if let condition = plan.condition {
      try readTags(of: &candidates)
      candidates.removeAll { candidate in
        guard let tags = candidate.tags else { return true }
        return !condition.holds { tag in tags.contains { $0.hasSameBytes(as: tag) } }
      }
    }
    return AudiencePage(
      targets: candidates.compactMap(\.target), examined: examined,
      last: examined < limit || last == slice.last ? nil : last)
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

  private func single(_ registration: Registration?, createdBefore: UnixTime) -> AudiencePage {
    guard let registration else { return AudiencePage(targets: [], examined: 0, last: nil) }
    let isMeant = platforms.contains(registration.platform) && registration.createdAt <= createdBefore
    return AudiencePage(targets: isMeant ? [Target(registration)] : [], examined: 1, last: nil)
  }

  /// The first registrations of the slice that carry one of the tags.
  private func read(_ tags: [String], _ slice: RegistrationSlice, _ limit: Int) throws -> [Candidate] {
    guard !tags.isEmpty else { return [] }
    let rows = try connection.execute(
      Self.statement(tagCount: tags.count), bounds(slice, limit) + tags.map { .text($0) })
    return try (0..<rows.count).map { try candidate(rows, $0) }
  }

  /// What reads the first `$4` registrations, from `$2` to `$3` of the hub `$1`, that carry one of so many tags, `$5`
  /// and the following; each once.
  static func statement(tagCount: Int) -> String {
    let ranges = (0..<tagCount).map { index in
      """
      (SELECT registration, platform, handle, registered_at, created_at FROM tags
      WHERE hub = $1 AND tag = $\(index + 5) AND registration >= $2 AND registration <= $3 ORDER BY registration LIMIT $4)
      """
    }
    guard tagCount > 1 else { return ranges.joined() }
    // The ranges are sorted, so the server merges them, and reads of each no more than comes to be part of the page.
    return """
      SELECT DISTINCT ON (registration) registration, platform, handle, registered_at, created_at
      FROM (\(ranges.joined(separator: " UNION ALL "))) AS t ORDER BY registration LIMIT $4
      """
  }

  /// The first registrations of the slice.
  private func readAll(_ slice: RegistrationSlice, _ limit: Int) throws -> [Candidate] {
    let tags = plan.condition == nil ? "NULL" : "tags"
    let rows = try connection.execute(
      """
      SELECT id, platform, handle, registered_at, created_at, \(tags) FROM registrations
      WHERE hub = $1 AND id >= $2 AND id <= $3 ORDER BY id LIMIT $4
      """, bounds(slice, limit))
    return try (0..<rows.count).map { row in
      var candidate = try candidate(rows, row)
      if !rows.isNull(row, 5) { candidate.tags = try rows.texts(row, 5) }
      return candidate
    }
  }

  /// Reads what the registrations carry, where that has not been read yet. Of one that is gone in the meantime nothing
  /// is found.
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

  private func bounds(_ slice: RegistrationSlice, _ limit: Int) -> [Parameter] {
    [.text(hub.rawValue), .id(slice.first), .id(slice.last), .int8(Int64(limit))]
  }

  private func candidate(_ rows: ResultRows, _ row: Int) throws -> Candidate {
    let id: RegistrationID = try rows.identifier(row, 0)
    guard let bit = try rows.optionalInteger(row, 1) else {
      return Candidate(id: id, target: nil, createdAt: UnixTime(milliseconds: .max))
    }
    guard let platform = Platform(stored: bit) else { throw StoredRegistration.damaged }
    return Candidate(
      id: id,
      target: Target(
        registration: id, platform: platform, handle: try rows.text(row, 2),
        registeredAt: UnixTime(milliseconds: try rows.integer(row, 3))),
      createdAt: UnixTime(milliseconds: try rows.integer(row, 4)))
  }

  private static let tagsByID = PreparedStatement(
    "SELECT id, tags FROM registrations WHERE hub = $1 AND id = ANY ($2) AND username IS NOT NULL")

  /// About how many devices carry each of the tags, found out with one statement: it reads no more than a sample of
  /// each.
  static func weights(of tags: [String], hub: HubName, _ connection: PostgreSQLConnection) throws -> [Int] {
    var weights = tags.map { _ in 0 }
    let known = tags.indices.filter { tags[$0].isStorable }
    guard !known.isEmpty else { return weights }
    let sql = known.indices.map { place in
      """
      SELECT \(known[place]), count(*), (array_agg(registration ORDER BY registration))[\(TagWeights.sample)] FROM
      (SELECT registration FROM tags WHERE hub = $1 AND tag = $\(place + 2) ORDER BY registration LIMIT \(TagWeights.sample)) AS s
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
}
