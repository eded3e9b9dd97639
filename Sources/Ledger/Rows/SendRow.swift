import FanfareCore
import Store

/// A row of the sends table, for sends of several items and records out of order; other records need no row in memory.
struct SendRow {
  private(set) var isAnnounced: Bool
  /// The number of the send's items: that of the attempt that counted, or of the largest attempt known.
  private(set) var knownParts: Int
  /// The items that count: none, or all those of one complete attempt.
  private(set) var sum: ItemSum
  /// The digest of the record of a send of one item.
  private(set) var digest: Int64?
  let acceptedAt: UnixTime
  let sender: String?
  let audience: String

  /// The columns that `init(_:)` reads.
  static let columns = """
    s.is_announced, s.known_parts, s.settled_parts, s.digest, s.accepted_at, s.sender, s.audience, s.state, s.settled_at, \
    s.counts, s.devices, s.failures, s.times
    """
  static let columnCount: Int32 = 13

  /// Whether one attempt is complete.
  var isSettled: Bool { sum.items >= knownParts }

  /// Whether the send was dead-lettered; a later status record, after a redrive, replaces that result.
  var wasDeadLettered: Bool { isSettled && digest != nil && sum.state == .deadLettered }

  /// The state shown to callers.
  var report: SendReport.State {
    guard isSettled, let state = sum.state else { return .accepted }
    return switch state {
    case .settled: .settled
    case .noTarget: .noTarget
    case .expired: .expired
    case .deadLettered: .deadLettered
    case .cancelled: .cancelled
    }
  }

  /// The report for callers. `furthest` is the sum of the open attempt with the most items.
  func makeReport(of send: SendID, hub: HubName, furthest: () throws -> ItemSum?) rethrows -> SendReport {
    let sum = try !isSettled && knownParts > 1 ? furthest() ?? self.sum : self.sum
    return SendReport(
      id: send, hub: hub, state: report, sender: sender, audience: audience.isEmpty ? nil : audience,
      isBroadcast: Audience.isBroadcast(text: audience), acceptedAt: acceptedAt,
      settledAt: isSettled ? sum.settledAt : nil,
      counts: sum.tally.byPlatform, failures: sum.failures, devices: sum.devices, times: sum.times)
  }

  /// Notes that the send itself is known. Returns whether it was not.
  mutating func announce() -> Bool {
    defer { isAnnounced = true }
    return !isAnnounced
  }

  /// Raises the number of expected items.
  mutating func expect(parts: Int) {
    knownParts = max(knownParts, parts)
  }

  /// Settles the send with these items. `digest` is that of the record of a send of one item.
  mutating func settle(_ sum: ItemSum, digest: Int64?) {
    self.sum = sum
    self.digest = digest
    knownParts = sum.items
  }

  /// The key under which the send's items are stored.
  func key(of send: SendID, hub: HubName) -> BatchPlan.Key {
    BatchPlan.Key(hub: hub, id: send, day: BatchPlan.day(of: acceptedAt))
  }

  /// A row has values that no release has written.
  static let damaged = LedgerError(.unusable, "the ledger has a row that this release cannot read")
}

// In an extension, so that the memberwise initialiser exists, too.
extension SendRow {
  /// Reads `columns`. Throws `damaged` for values that no release has written.
  init(_ row: Row) throws {
    self.init(
      isAnnounced: try row.bool(0), knownParts: try row.int(1), sum: try ItemSum(items: row.int(2), row, from: 7),
      digest: try row.optionalInteger(3), acceptedAt: try row.time(4), sender: try row.optionalText(5),
      audience: try row.text(6))
  }

  /// A send known only by this item.
  init(_ settlement: LedgerEntry.Settlement) {
    isAnnounced = false
    knownParts = 1
    sum = ItemSum()
    acceptedAt = settlement.acceptedAt
    sender = settlement.sender
    audience = settlement.audience
  }
}
