import DequeModule
import FanfareCore

/// Deferred records of broadcasts that have come back and wait for their turn: that of one broadcast after another, and
/// of each broadcast's records the oldest first.
///
/// Invariants: a broadcast has a turn while records of it wait; `bytes` is the sum of the waiting records' sizes.
struct ReturnedRecords: Sendable {
  struct Waiting: Sendable {
    /// The item of the record. It may have been given up meanwhile.
    let ticket: Ticket
    let retry: RetryRecord
    /// The size of the record as it was consumed.
    let bytes: Int
    /// Whether a page deferred it.
    let isOfPage: Bool
    let expiresAt: UnixTime
    /// Uptime at which the wait began.
    let since: Int64
  }

  private var queues: [BroadcastID: Deque<Waiting>] = [:]
  /// The broadcasts with waiting records, in the order of their turns.
  private(set) var broadcasts: Deque<BroadcastID> = []
  private(set) var count = 0
  private(set) var bytes = 0

  var isEmpty: Bool { count == 0 }

  mutating func append(_ waiting: Waiting) {
    let broadcast = waiting.retry.broadcast
    if queues[broadcast] == nil { broadcasts.append(broadcast) }
    queues[broadcast, default: []].append(waiting)
    count += 1
    bytes += waiting.bytes
  }

  /// Takes out the oldest record of the next broadcast for whose oldest record that holds; nil: none.
  mutating func popNext(where mayHaveTurn: (Waiting) -> Bool) -> Waiting? {
    guard let index = broadcasts.firstIndex(where: { queues[$0]?.first.map(mayHaveTurn) == true }) else { return nil }
    let broadcast = broadcasts.remove(at: index)
    guard let next = queues[broadcast]?.popFirst() else { return nil }
    if queues[broadcast]?.isEmpty == true { queues[broadcast] = nil } else { broadcasts.append(broadcast) }
    count -= 1
    bytes -= next.bytes
    return next
  }

  /// Takes out all records to which that applies; asks once for each.
  mutating func remove(where isToLeave: (Waiting) -> Bool) -> [Waiting] {
    var leaving: [Waiting] = []
    for broadcast in broadcasts {
      var staying: Deque<Waiting> = []
      for next in queues[broadcast] ?? [] {
        if isToLeave(next) { leaving.append(next) } else { staying.append(next) }
      }
      queues[broadcast] = staying.isEmpty ? nil : staying
    }
    broadcasts.removeAll { queues[$0] == nil }
    count -= leaving.count
    bytes -= leaving.reduce(0) { $0 + $1.bytes }
    return leaving
  }

  func checkInvariants() -> [String] {
    var violations: [String] = []
    if Set(broadcasts) != Set(queues.keys) || broadcasts.count != queues.count
      || queues.values.contains(where: \.isEmpty)
    {
      violations.append("broadcasts \(broadcasts) have a turn, records of \(queues.keys) wait")
    }
    let waiting = queues.values.joined()
    if count != waiting.count || bytes != waiting.reduce(0, { $0 + $1.bytes }) {
      violations.append("\(count) records of \(bytes) bytes counted, \(waiting.count) found")
    }
    return violations
  }
}

extension RetryRecord {
  var broadcast: BroadcastID { BroadcastID(hub: send.hub, send: send.identity) }
}
