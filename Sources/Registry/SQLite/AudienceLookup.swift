import FanfareCore
import GRDB

/// Answers a batch of audience queries on one snapshot.
///
/// All tags of a batch go into one statement as a JSON array, and so do all handles: starting a statement, binding its
/// arguments and making a cursor cost more than the look-up itself, and this way they are paid once per batch instead
/// of once per tag.
struct AudienceLookup {
  /// The devices that carry the tags of the JSON array `?2` in the hub `?1`. CROSS JOIN keeps SQLite from turning the
  /// loops round: each key of a batch drives look-ups by key, never a scan.
  static let byTag = """
    SELECT keys.key, t.platform, t.registration, t.handle, t.registered_at FROM json_each(?2) AS keys
    CROSS JOIN tags AS t ON t.hub = ?1 AND t.tag = keys.value
    """
  /// The devices that hold the handles of the JSON array `?2` in the hub `?1`.
  static let byHandle = """
    SELECT keys.key, r.platform, r.id, r.handle, r.registered_at FROM json_each(?2) AS keys
    CROSS JOIN registrations AS r ON r.hub = ?1 AND r.handle = keys.value AND r.user IS NOT NULL
    """

  private let queries: [AudienceQuery]
  private let weights: TagWeights
  private var answers: [[Target]]

  /// A look-up of these queries.
  init(_ queries: [AudienceQuery], weights: TagWeights) {
    self.queries = queries
    self.weights = weights
    answers = Array(repeating: [], count: queries.count)
  }

  /// The devices of each query's audience, in the order of the queries.
  consuming func run(_ db: Database) throws -> [[Target]] {
    // A batch is of one hub, or of a few.
    var hubs: [HubName] = []
    for query in queries where !hubs.contains(query.hub) { hubs.append(query.hub) }
    for hub in hubs {
      try run(db, hub, hubs.count == 1 ? Array(queries.indices) : queries.indices.filter { queries[$0].hub == hub })
    }
    return answers
  }

  private mutating func run(_ db: Database, _ hub: HubName, _ indices: [Int]) throws {
    var tags = KeyList()
    var handles = KeyList()
    for index in indices {
      switch queries[index].audience {
      case .user(let name): tags.append(prefix: Tag.usernamePrefix, name, for: index)
      case .tag(let tag): tags.append(tag, for: index)
      case .device(let platform, let handle):
        handles.append(DeviceHandle.normalized(handle, platform: platform), for: index)
      case .registration(let id):
        guard let registration = try RegistrationTable(db, hub).find(id)?.registration,
          queries[index].platforms.contains(registration.platform),
          queries[index].createdBefore.map({ registration.createdAt <= $0 }) ?? true
        else { continue }
        answers[index] = [Target(registration)]
      case .tags, .expression, .everyone: answers[index] = try AudiencePager(db, queries[index], weights: weights).all()
      }
    }
    try collect(db, hub, tags, Self.byTag)
    try collect(db, hub, handles, Self.byHandle)
  }

  private mutating func collect(_ db: Database, _ hub: HubName, _ keys: KeyList, _ sql: String) throws {
    guard !keys.indices.isEmpty else { return }
    let statement = try db.cachedStatement(sql: sql)
    let rows = try Row.fetchCursor(statement, arguments: [hub.rawValue, keys.json])
    while let row = try rows.next() {
      let index = keys.indices[row[0] as Int]
      let query = queries[index]
      guard let platform = Platform(stored: row[1] as Int64) else { throw StoredRegistration.damaged }
      guard query.platforms.contains(platform) else { continue }
      if case .device(let wanted, _) = query.audience, wanted != platform { continue }
      guard let id = statement.registrationID(at: 2) else { throw StoredRegistration.damaged }
      answers[index].append(
        Target(registration: id, platform: platform, handle: row[3], registeredAt: UnixTime(milliseconds: row[4])))
    }
  }
}

/// Keys to look up, as a JSON array, and the query that each is for.
private struct KeyList {
  private(set) var indices: [Int] = []
  private var elements: [UInt8] = []

  /// The array as text.
  var json: String { "[" + String(decoding: elements, as: UTF8.self) + "]" }

  /// Adds a key. One with control characters is left out: no stored text has any, and SQLite would cut it short at a
  /// NUL and find somebody else.
  mutating func append(prefix: String = "", _ key: String, for index: Int) {
    guard key.isStorable else { return }
    if !indices.isEmpty { elements.append(UInt8(ascii: ",")) }
    elements.appendJSON(prefix.isEmpty ? key : prefix + key)
    indices.append(index)
  }
}
