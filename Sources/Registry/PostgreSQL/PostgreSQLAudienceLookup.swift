import FanfareCore
import PostgreSQL

/// Answers a batch of audience queries, in one round trip for each hub among them.
struct PostgreSQLAudienceLookup {
  /// The devices of the hub `$1` that carry the tags `$2`, hold the handles `$3` or have the ids `$4`; with each the
  /// key that found it. Arrays of the keys of an index: the server goes down the tree once for each, whatever it
  /// believes about the table.
  static let statement = PreparedStatement(
    """
    SELECT tag, platform, registration, handle, registered_at, NULL::bigint FROM tags WHERE hub = $1 AND tag = ANY ($2)
    UNION ALL
    SELECT NULL, platform, registration, handle, registered_at, NULL::bigint FROM handles
      WHERE hub = $1 AND handle = ANY ($3) AND platform IS NOT NULL
    UNION ALL
    SELECT '', platform, id, handle, registered_at, created_at FROM registrations
      WHERE hub = $1 AND id = ANY ($4) AND username IS NOT NULL
    """)

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
  consuming func run(_ connection: PostgreSQLConnection) throws -> [[Target]] {
    // A batch is of one hub, or of a few.
    var hubs: [HubName] = []
    for query in queries where !hubs.contains(query.hub) { hubs.append(query.hub) }
    for hub in hubs {
      try run(
        connection, hub, hubs.count == 1 ? Array(queries.indices) : queries.indices.filter { queries[$0].hub == hub })
    }
    return answers
  }

  private mutating func run(_ connection: PostgreSQLConnection, _ hub: HubName, _ indices: [Int]) throws {
    var tags: [ExactText: [Int]] = [:]
    var handles: [ExactText: [Int]] = [:]
    var ids: [RegistrationID: [Int]] = [:]
    tags.reserveCapacity(indices.count)
    for index in indices {
      switch queries[index].audience {
      case .user(let name): tags.add(Tag.usernamePrefix + name, index)
      case .tag(let tag): tags.add(tag, index)
      case .device(let platform, let handle): handles.add(DeviceHandle.normalized(handle, platform: platform), index)
      case .registration(let id): ids[id, default: []].append(index)
      case .tags, .expression, .everyone:
        answers[index] = try PostgreSQLAudiencePager(connection, queries[index], weights: weights).all()
      }
    }
    guard !tags.isEmpty || !handles.isEmpty || !ids.isEmpty else { return }
    let rows = try connection.query(
      Self.statement,
      [
        .text(hub.rawValue), .texts(tags.keys.map { $0.text }), .texts(handles.keys.map { $0.text }),
        .ids(Array(ids.keys)),
      ])
    for row in 0..<rows.count {
      guard let platform = Platform(stored: try rows.integer(row, 1)) else { throw StoredRegistration.damaged }
      let target = Target(
        registration: try rows.identifier(row, 2), platform: platform, handle: try rows.text(row, 3),
        registeredAt: UnixTime(milliseconds: try rows.integer(row, 4)))
      let askers: [Int]? =
        if let tag = try rows.optionalText(row, 0) {
          // No tag is empty: it stands for what was found by its id.
          tag.isEmpty ? ids[target.registration] : tags[ExactText(text: tag)]
        } else {
          handles[ExactText(text: target.handle)]
        }
      for index in askers ?? [] where queries[index].platforms.contains(platform) {
        switch queries[index].audience {
        case .device(let wanted, _): if wanted != platform { continue }
        case .registration:
          if let moment = queries[index].createdBefore, try rows.integer(row, 5) > moment.milliseconds { continue }
        case .user, .tag, .tags, .expression, .everyone: break
        }
        answers[index].append(target)
      }
    }
  }
}

/// A text that is equal to another one only byte for byte.
private struct ExactText: Hashable {
  let text: String

  static func == (left: Self, right: Self) -> Bool { left.text.hasSameBytes(as: right.text) }

  func hash(into hasher: inout Hasher) {
    let bytes = text.utf8Span.span
    for index in bytes.indices { hasher.combine(bytes[index]) }
  }
}

extension [ExactText: [Int]] {
  /// Adds who asks for a key. One with control characters is left out: no stored text has any, and PostgreSQL would
  /// refuse a NUL.
  fileprivate mutating func add(_ key: String, _ index: Int) {
    if key.isStorable { self[ExactText(text: key), default: []].append(index) }
  }
}
