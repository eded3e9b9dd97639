import DequeModule
import NIOCore

/// The requests of a pool that wait for a stream, first come first served in each of two lanes: of `share` requests
/// that are taken while both wait, one is bulk.
struct RequestQueue {
  private static let share = 8

  private var single: Deque<RequestBatch> = []
  private var bulk: Deque<RequestBatch> = []
  /// How many that are not bulk were taken in a row while others that are waited.
  private var run = 0
  /// No waiting request expires before this moment.
  private var earliestDeadline = NIODeadline.distantFuture

  /// How many requests wait.
  private(set) var count = 0

  /// When the request that waits longest was submitted.
  var oldestSubmission: NIODeadline? { [single.first?.submittedAt, bulk.first?.submittedAt].compactMap(\.self).min() }

  /// Adds a batch behind all others of its kind.
  mutating func append(_ batch: RequestBatch) {
    guard !batch.requests.isEmpty else { return }
    if batch.isBulk { bulk.append(batch) } else { single.append(batch) }
    note(batch)
  }

  /// Puts a batch before all others of its kind.
  mutating func prepend(_ batch: RequestBatch) {
    guard !batch.requests.isEmpty else { return }
    if batch.isBulk { bulk.prepend(batch) } else { single.prepend(batch) }
    note(batch)
  }

  private mutating func note(_ batch: RequestBatch) {
    count += batch.requests.count
    earliestDeadline = min(earliestDeadline, batch.earliestDeadline)
  }

  /// Takes up to `limit` requests from the front.
  mutating func take(_ limit: Int) -> [RequestBatch] {
    var taken: [RequestBatch] = []
    var room = limit
    while room > 0, count > 0 {
      let part: RequestBatch
      if bulk.isEmpty {
        part = Self.take(room, from: &single)
        run = 0
      } else if single.isEmpty {
        part = Self.take(room, from: &bulk)
        run = 0
      } else if run < Self.share - 1 {
        part = Self.take(min(room, Self.share - 1 - run), from: &single)
        run += part.requests.count
      } else {
        part = Self.take(1, from: &bulk)
        run = 0
      }
      room -= part.requests.count
      count -= part.requests.count
      taken.append(part)
    }
    return taken
  }

  private static func take(_ limit: Int, from lane: inout Deque<RequestBatch>) -> RequestBatch {
    var batch = lane.removeFirst()
    let part = batch.split(first: limit)
    if !batch.requests.isEmpty { lane.prepend(batch) }
    return part
  }

  /// Takes out everything.
  mutating func takeAll() -> [RequestBatch] { take(count) }

  /// Takes out the requests whose time is up at `now`.
  mutating func takeExpired(at now: NIODeadline) -> [RequestBatch] {
    guard earliestDeadline <= now else { return [] }
    earliestDeadline = .distantFuture
    return takeExpired(at: now, from: \.single) + takeExpired(at: now, from: \.bulk)
  }

  private mutating func takeExpired(at now: NIODeadline, from lane: WritableKeyPath<Self, Deque<RequestBatch>>)
    -> [RequestBatch]
  {
    var expired: [RequestBatch] = []
    var kept: Deque<RequestBatch> = []
    while var batch = self[keyPath: lane].popFirst() {
      if let part = batch.splitExpired(at: now) {
        expired.append(part)
        count -= part.requests.count
      }
      guard !batch.requests.isEmpty else { continue }
      earliestDeadline = min(earliestDeadline, batch.earliestDeadline)
      kept.append(batch)
    }
    self[keyPath: lane] = kept
    return expired
  }
}
