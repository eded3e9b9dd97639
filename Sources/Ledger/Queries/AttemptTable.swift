import FanfareCore
import Store

/// The items of one send. The caller's transaction has locked the send's row.
struct AttemptTable: SendItems {
  private let session: Session
  private let send: [Value]

  init(_ session: Session, _ key: BatchPlan.Key) {
    self.session = session
    send = [.integer(Int64(key.day)), .hub(key.hub), .id(key.id)]
  }

  private static let ofSend = "day = ?1 AND hub = ?2 AND send = ?3"
  private static let selectFurthest = PreparedStatement(
    """
    SELECT settled_parts, \(ItemSum.columns) FROM ledger_attempts WHERE \(ofSend)
    ORDER BY settled_parts DESC, attempt LIMIT 1
    """)
  private static let selectRanges = PreparedStatement(
    """
    SELECT part, span, digest FROM ledger_parts WHERE \(ofSend) AND attempt = ?4
      AND part >= coalesce((SELECT max(part) FROM ledger_parts WHERE \(ofSend) AND attempt = ?4 AND part <= ?5), ?5)
      AND part < ?6 AND part + span > ?5 ORDER BY part
    """)
  private static let addPart = PreparedStatement(
    """
    INSERT INTO ledger_parts (day, hub, send, attempt, part, span, digest) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
    """)
  private static let selectSum = PreparedStatement(
    "SELECT settled_parts, \(ItemSum.columns) FROM ledger_attempts WHERE \(ofSend) AND attempt = ?4")
  private static let putSum = PreparedStatement(
    """
    INSERT INTO ledger_attempts (day, hub, send, attempt, settled_parts, \(ItemSum.columns))
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)
    ON CONFLICT (day, hub, send, attempt) DO UPDATE SET settled_parts = excluded.settled_parts, state = excluded.state,
      settled_at = excluded.settled_at, counts = excluded.counts, devices = excluded.devices,
      failures = excluded.failures, times = excluded.times
    """)
  private static let noteOthers = PreparedStatement(
    """
    INSERT INTO ledger_duplicates (day, hub, send, part, digest)
    SELECT day, hub, send, part, digest FROM ledger_parts WHERE \(ofSend) AND attempt <> ?4
    ON CONFLICT (day, hub, send, part, digest) DO NOTHING
    """)
  private static let removeOthers = PreparedStatement("DELETE FROM ledger_parts WHERE \(ofSend) AND attempt <> ?4")
  private static let removeSums = PreparedStatement("DELETE FROM ledger_attempts WHERE \(ofSend)")
  private static let removeParts = PreparedStatement("DELETE FROM ledger_parts WHERE \(ofSend)")
  private static let removeDuplicates = PreparedStatement("DELETE FROM ledger_duplicates WHERE \(ofSend)")
  private static let removeRedeemed = PreparedStatement(
    """
    DELETE FROM ledger_duplicates WHERE \(ofSend)
      AND digest IN (SELECT digest FROM ledger_parts WHERE \(ofSend) AND attempt = ?4)
    """)
  private static let isNoted = PreparedStatement(
    "SELECT part FROM ledger_duplicates WHERE \(ofSend) AND part = ?4 AND digest = ?5")
  private static let note = PreparedStatement(
    """
    INSERT INTO ledger_duplicates (day, hub, send, part, digest) VALUES (?1, ?2, ?3, ?4, ?5)
    ON CONFLICT (day, hub, send, part, digest) DO NOTHING
    """)

  /// The sum of the open attempt with the most items; nil when there is none.
  func furthest() throws -> ItemSum? {
    try session.first(Self.selectFurthest, send) { try ItemSum(items: $0.int(0), $0, from: 1) }
  }

  /// The row before the item's first one may reach into the item; all others begin in it.
  func stored(_ item: LedgerEntry.Settlement) throws -> [StoredRange] {
    let range: [Value] = [.bytes(item.attemptKey), .int(item.range.lowerBound), .int(item.range.upperBound)]
    return try session.all(Self.selectRanges, send + range) { row in
      guard let items = StoredRange.items(try row.integer(0), try row.integer(1)) else { throw SendRow.damaged }
      return StoredRange(items: items, digest: try row.integer(2))
    }
  }

  func add(_ item: LedgerEntry.Settlement, _ ranges: [Range<Int>], maximumDevices: Int) throws -> ItemSum {
    let attempt = send + [.bytes(item.attemptKey)]
    try session.run(
      Self.addPart, each: ranges.map { attempt + [.int($0.lowerBound), .int($0.count), .integer(item.digest)] })
    var sum = try session.first(Self.selectSum, attempt) { try ItemSum(items: $0.int(0), $0, from: 1) } ?? ItemSum()
    sum.add(item, items: ranges.reduce(0) { $0 + $1.count }, maximumDevices: maximumDevices)
    try session.run(Self.putSum, attempt + [.int(sum.items)] + sum.values)
    return sum
  }

  func noteOthers(than item: LedgerEntry.Settlement) throws -> Int {
    try session.run(Self.noteOthers, send + [.bytes(item.attemptKey)])
  }

  func close(with item: LedgerEntry.Settlement) throws {
    try session.run(Self.removeOthers, send + [.bytes(item.attemptKey)])
    try session.run(Self.removeSums, send)
  }

  func redeem(_ item: LedgerEntry.Settlement) throws -> Int {
    try session.run(Self.removeRedeemed, send + [.bytes(item.attemptKey)])
  }

  func isDuplicate(_ item: LedgerEntry.Settlement) throws -> Bool {
    try session.first(Self.isNoted, send + [.int(item.part), .integer(item.digest)]) { try $0.integer(0) } != nil
  }

  func noteDuplicate(_ digest: Int64, part: Int) throws -> Int {
    try session.run(Self.note, send + [.int(part), .integer(digest)])
  }

  /// Removes everything that is stored of the send's items, or only the notes if there cannot be more.
  func remove(hasItems: Bool) throws {
    try session.run(Self.removeDuplicates, send)
    guard hasItems else { return }
    try session.run(Self.removeParts, send)
    try session.run(Self.removeSums, send)
  }
}
