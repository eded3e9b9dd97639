import FanfareCore

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
