import FanfareCore
import RDKafka

/// The items' share of the worker's limits.
struct HeldMemory: Hashable, Sendable {
  /// Items, without segments and pages of broadcasts.
  var records = 0
  /// Bytes of their records.
  var bytes = 0
  /// Segments and pages of broadcasts.
  var segments = 0
  /// Bytes of their records.
  var segmentBytes = 0
  /// Devices of items that are being dispatched.
  var devices = 0

  /// Counts an item, or, with -1, removes it from the count.
  mutating func add(_ item: borrowing WorkItem, times: Int) {
    if item.isOfBroadcast {
      segments += times
      segmentBytes += times * item.source.bytes
    } else {
      records += times
      bytes += times * item.source.bytes
    }
  }

  /// The share of the room for records that is taken; above 1 by what is exempt.
  func share(of limits: WorkerConfiguration.Limits) -> Double {
    max(Double(records) / Double(limits.maximumRecords), Double(bytes) / Double(limits.maximumBytes))
  }

  /// Whether more than that many quarters of the room for records are taken.
  func exceeds(quarters: Int, of limits: WorkerConfiguration.Limits) -> Bool {
    records > limits.maximumRecords / 4 * quarters || bytes > limits.maximumBytes / 4 * quarters
  }

  /// Whether little room is left for further records.
  func isShortOfRoom(_ limits: WorkerConfiguration.Limits) -> Bool {
    records > limits.maximumRecords * 3 / 4 || bytes > limits.maximumBytes / 4 * 3
  }

  /// The records and bytes that do not count against the limits: those of pushes that an unresponsive service leaves
  /// unanswered, at most once more the limits. Otherwise one silent service would stop the reading of all sends. The
  /// worker defers the sends queued behind these pushes, so their number stays small. An estimate: a record with
  /// several such pushes counts once for each, and is assumed to have the average size.
  func exempt(forPushes pushes: Int, limits: WorkerConfiguration.Limits) -> (records: Int, bytes: Int) {
    guard pushes > 0, records > 0 else { return (0, 0) }
    // Every held item needs a slot.
    let exempt = min(pushes, records, limits.maximumRecords, Ticket.maximumSlots / 8)
    return (exempt, min(bytes / records * exempt, limits.maximumBytes))
  }
}

/// Consumer credit: how many records the consumer may still deliver.
///
/// Invariant: after a grant, credit and held records together stay within the limit, unless records arrived that were
/// under way when credit was taken back.
struct RecordCredit: Sendable {
  /// Outstanding credit; negative after a reduction that came too late for records under way.
  private(set) var outstanding = 0
  private(set) var typicalSize = RecordSizeEstimate()
  /// Whether the consumer was told to deliver no further segments.
  private(set) var pausesSegments = false

  /// Reduces the credit by the records that have arrived.
  mutating func receive(_ count: Int) { outstanding -= count }

  /// Updates the typical size with the sends' records that have arrived.
  mutating func measure(records: Int, bytes: Int) { typicalSize.observe(records: records, bytes: bytes) }

  /// The change of credit to grant; negative: a reduction. Small grants are collected. `mayGrow`:
  /// whether the worker wants further records; evaluated last, because it looks at every partition.
  mutating func grant(
    _ held: HeldMemory, exempt: (records: Int, bytes: Int), mayGrow: @autoclosure () -> Bool,
    limits: WorkerConfiguration.Limits
  ) -> Int {
    let left = limits.maximumBytes + exempt.bytes - held.bytes
    // At least one, however large the last ones were: only further records show that they have become smaller.
    let fitting = left > 0 ? max(1, typicalSize.records(in: left)) : 0
    let change = min(limits.maximumRecords + exempt.records - held.records, fitting, 2048) - outstanding
    // Credit granted when records were small is taken back when they turn out to be large.
    if change >= 0 {
      guard change > 0, outstanding <= 0 || change >= min(512, limits.maximumRecords / 8), mayGrow() else { return 0 }
    }
    outstanding += change
    return change
  }

  #if DEBUG
  /// Violations after a grant.
  /// Records that were under way when credit was taken back may exceed the limit, but then no credit is left.
  func checkInvariants(
    _ held: HeldMemory, exempt: (records: Int, bytes: Int), limits: WorkerConfiguration.Limits
  ) -> [String] {
    guard outstanding > 0 else { return [] }
    var violations: [String] = []
    if outstanding + held.records > limits.maximumRecords + exempt.records {
      violations.append(
        "\(held.records) records and credit for \(outstanding) exceed \(limits.maximumRecords) + \(exempt.records)")
    }
    let room = limits.maximumBytes + exempt.bytes - held.bytes
    if room <= 0 || outstanding > max(1, typicalSize.records(in: room)) {
      violations.append("credit for \(outstanding) records exceeds the room of \(room) bytes")
    }
    return violations
  }
  #endif

  /// Whether the consumer must stop or resume delivering segments; nil: no change.
  mutating func pauseSegments(_ held: HeldMemory, hasReachedSpan: Bool, limits: WorkerConfiguration.Limits) -> Bool? {
    let hasRoom =
      held.segments < limits.maximumSegments && held.segmentBytes < limits.maximumSegmentBytes && !hasReachedSpan
    guard pausesSegments == hasRoom else { return nil }
    pausesSegments = !hasRoom
    return pausesSegments
  }
}
