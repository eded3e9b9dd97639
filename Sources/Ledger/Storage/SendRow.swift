import FanfareCore
import Foundation
import GRDB

/// A row of the table of sends, for what one statement cannot do: sends of several items, and records that come out of
/// order.
struct SendRow {
  private(set) var isAnnounced: Bool
  /// How many items the send has: as many as the attempt that has counted, or the largest one known, has.
  private(set) var knownParts: Int
  /// What has counted: nothing, or one item, or all those of one attempt.
  private(set) var sum: ItemSum
  /// The digest of the item's record, of a send that was one item.
  private(set) var digest: Int64?
  let acceptedAt: UnixTime
  let sender: String?
  let audience: String

  /// What `init(_:)` reads.
  static let columns =
    "is_announced, known_parts, settled_parts, part_0, accepted_at, sender, audience, \(ItemSum.columns)"

  /// Reads `columns`. Throws when no release has written the row.
  init(_ row: Row) throws {
    isAnnounced = row[0]
    knownParts = row[1]
    digest = row[3]
    acceptedAt = UnixTime(milliseconds: row[4])
    sender = row[5]
    audience = row[6]
    sum = try ItemSum(items: row[2], row, from: 7)
  }

  /// From what columns hold.
  init(
    isAnnounced: Bool, knownParts: Int, sum: ItemSum, digest: Int64?, acceptedAt: UnixTime, sender: String?,
    audience: String
  ) {
    self.isAnnounced = isAnnounced
    self.knownParts = knownParts
    self.sum = sum
    self.digest = digest
    self.acceptedAt = acceptedAt
    self.sender = sender
    self.audience = audience
  }

  /// A send of which nothing is known but that this item of it has ended.
  init(_ settlement: LedgerEntry.Settlement) {
    isAnnounced = false
    knownParts = 1
    sum = ItemSum()
    acceptedAt = settlement.acceptedAt
    sender = settlement.sender
    audience = settlement.audience
  }

  /// Whether every item of one attempt has ended.
  var isSettled: Bool { sum.items >= knownParts }

  /// Whether it could not be processed: then a record that says what became of it after all has the last word.
  var wasSetAside: Bool { isSettled && digest != nil && sum.state == .deadLettered }

  /// Where the send stands, as callers are told.
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

  /// What callers are told. `furthest`: while several items are open, what those of the attempt that has come furthest
  /// have come to.
  func makeReport(of send: SendID, hub: HubName, furthest: () throws -> ItemSum?) rethrows -> SendReport {
    let sum = try !isSettled && knownParts > 1 ? furthest() ?? self.sum : self.sum
    return SendReport(
      id: send, hub: hub, state: report, sender: sender, audience: audience.isEmpty ? nil : audience,
      isBroadcast: Audience.isBroadcast(text: audience), acceptedAt: acceptedAt,
      settledAt: isSettled ? sum.settledAt : nil,
      counts: sum.tally.byPlatform, devices: sum.devices)
  }

  /// Takes note that the send has several items, not all of which are there.
  mutating func expect(parts: Int) {
    knownParts = max(knownParts, parts)
  }

  /// The send has ended with these items. `digest`: that of the record, where it is a single one.
  mutating func settle(_ sum: ItemSum, digest: Int64?) {
    self.sum = sum
    self.digest = digest
    knownParts = sum.items
  }

  /// The values of the columns that items change: `known_parts`, `settled_parts`, `part_0` and those of `ItemSum`.
  var itemValues: [DatabaseValue] {
    [knownParts.databaseValue, sum.items.databaseValue, digest.databaseValue] + sum.values
  }

  /// The file holds what no release has written.
  static let damaged = LedgerError(.unusable, "the ledger holds a row that it cannot read")
}
