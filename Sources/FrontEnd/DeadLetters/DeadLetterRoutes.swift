import FanfareCore
import HTTPServer
import HTTPTypes
import Operations

/// The routes to list, see and redrive dead letters.
///
/// A letter is visible in the hub of the send in its record. One without a readable send, or whose hub the deployment
/// does not serve, is visible in the default hub, or the first one if that is not configured.
struct DeadLetterRoutes: Sendable {
  let access: AccessControl
  let store: any DeadLetterStore
  /// All hubs, the one of letters without a hub first.
  let hubs: [HubName]
  let maximumBodySize: Int

  var routes: [Route] {
    [
      // Those who may redrive letters must see which ones.
      Route(.get, "api/dead-letters", [.readAll, .operate]) { try await list($0, by: $1) },
      Route(.get, "api/dead-letters/{id}", [.readAll, .operate]) { try await read($0, by: $1) },
      Route(.post, "api/dead-letters/redrive", [.operate]) { try await redrive($0, by: $1) },
    ]
  }

  private func list(_ exchange: Exchange, by caller: Caller) async throws -> Answer {
    let query = try DeadLetterQuery(try Query(of: exchange), isVisible: isVisible(in: caller.hub.name))
    return .json(
      try await asking { () throws(DeadLetterError) in try await store.list(query) }
        .json(hasCounts: query.before == nil), isPrivate: true)
  }

  private func read(_ exchange: Exchange, by caller: Caller) async throws -> Answer {
    guard let place = exchange.parameters["id"].flatMap({ LogPlace(id: $0) }),
      let letter = try await asking({ () throws(DeadLetterError) in try await store.letter(at: place) }),
      isVisible(in: caller.hub.name)(letter)
    else { throw Refusal(.notFound, "there is no such dead letter") }
    return .json(letter.json(at: place), isPrivate: true)
  }

  private func redrive(_ exchange: Exchange, by caller: Caller) async throws -> Answer {
    try MediaType.json.require(of: exchange)
    let body = try RedriveBody(try await exchange.bytes(upTo: maximumBodySize))
    let order = RedriveOrder(
      selection: body.selection, after: body.after, isDryRun: body.isDryRun, isRepeated: body.isRepeated,
      isVisible: isVisible(in: caller.hub.name))
    func record(_ count: Int) {
      guard !body.isDryRun else { return }
      access.security.record(.deadLettersRedriven, for: exchange, by: caller, details: ["count": "\(count)"])
    }
    do throws(DeadLetterError) {
      let outcome = try await store.redrive(order)
      record(outcome.redriven)
      return .json(outcome.json(of: order), isPrivate: true)
    } catch {
      if case .interrupted(let count, _) = error { record(count) }
      throw Refusal(error)
    }
  }

  private func isVisible(in hub: HubName) -> @Sendable (DeadLetter) -> Bool {
    { [hubs] letter in
      // The hub that such a record names is not its sender's.
      let named = letter.reason == .foreignHub ? nil : letter.decodedRecord()?.send.hub
      return (named.flatMap { hubs.contains($0) ? $0 : nil } ?? hubs[0]) == hub
    }
  }

  private func asking<Value>(_ ask: () async throws(DeadLetterError) -> Value) async throws -> Value {
    do throws(DeadLetterError) { return try await ask() } catch { throw Refusal(error) }
  }
}

extension Refusal {
  fileprivate init(_ error: DeadLetterError) {
    switch error {
    case .unavailable: self.init(.kafkaUnavailable, "the dead letters cannot be read at the moment")
    case .busy: self.init(.overloaded, "other requests are reading the dead letters")
    case .tooMuch:
      self.init(
        .impossible, "the topics hold more records than one request may read; use `fanfare dead-letters` instead")
    case .interrupted(let count, let next):
      self.init(
        .outcomeUnknown,
        "at most \(count) records were redriven; "
          + (next == nil ? "repeat the request" : "the same request with `next` as its cursor continues"))
      self.next = next?.cursor
    }
  }
}

/// The body of a redrive.
struct RedriveBody {
  let selection: RedriveOrder.Selection
  let after: DeadLetterPosition?
  let isDryRun: Bool
  let isRepeated: Bool

  /// Reads `{"ids":["0-17"]}` or `{"reason":"unknownHub"}`, with `dryRun`, `again` and `cursor`.
  init(_ body: ArraySlice<UInt8>) throws(Refusal) {
    var (places, reason, isDryRun, isRepeated): (Set<LogPlace>?, DeadLetter.Reason?, Bool?, Bool?)
    var after: DeadLetterPosition?
    try readBody(body) { (key, reader) throws(JSONError) in
      switch key {
      case "ids":
        guard places == nil else { throw reader.duplicateMember() }
        var ids: Set<LogPlace> = []
        try reader.readArray { (reader) throws(JSONError) in
          guard let place = LogPlace(id: try reader.readString()) else {
            throw reader.error("must be the id of a dead letter: partition-offset")
          }
          ids.insert(place)
        }
        guard (1...RedriveOrder.maximumCount).contains(ids.count) else {
          throw reader.error("must have 1 to \(RedriveOrder.maximumCount) ids")
        }
        places = ids
      case "reason":
        guard reason == nil else { throw reader.duplicateMember() }
        reason = DeadLetter.Reason(rawValue: try reader.readString())
        guard reason != nil else { throw reader.error("must be \(DeadLetter.Reason.words)") }
      case "dryRun":
        guard isDryRun == nil else { throw reader.duplicateMember() }
        isDryRun = try reader.readBoolean()
      case "again":
        guard isRepeated == nil else { throw reader.duplicateMember() }
        isRepeated = try reader.readBoolean()
      case "cursor":
        guard after == nil else { throw reader.duplicateMember() }
        after = DeadLetterPosition(cursor: try reader.readString())
        guard after != nil else { throw reader.error("must be the member next of an earlier answer") }
      default: throw reader.error("is not a known member")
      }
    }
    switch (places, reason) {
    case (let places?, nil): selection = .places(places)
    case (nil, let reason?): selection = .reason(reason)
    default: throw Refusal(.invalidField, "ids or reason must be given, and not both")
    }
    self.after = after
    self.isDryRun = isDryRun ?? false
    self.isRepeated = isRepeated ?? false
  }
}

extension DeadLetter.Reason {
  fileprivate static let words = "one of " + allCases.map(\.rawValue).joined(separator: ", ")
}

extension DeadLetterQuery {
  /// Reads the parameters `reason`, `limit` and `cursor`.
  fileprivate init(_ query: Query, isVisible: @escaping @Sendable (DeadLetter) -> Bool) throws(Refusal) {
    try query.requireOnly(["reason", "limit", "cursor"])
    self.init(isVisible: isVisible)
    if let word = try query.value(of: "reason") {
      reason = DeadLetter.Reason(rawValue: word)
      guard reason != nil else { throw Refusal(.invalidParameter, "reason must be \(DeadLetter.Reason.words)") }
    }
    if let number = try query.limit(upTo: Self.maximumLimit) { limit = number }
    before = try query.cursor { DeadLetterPosition(cursor: $0) }
  }
}
