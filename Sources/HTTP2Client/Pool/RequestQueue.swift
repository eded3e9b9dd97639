import NIOCore
import TwoLaneQueue

/// The requests of a pool that wait for a stream, in batches, with a lane for single requests and one for bulk.
struct RequestQueue {
  private var batches = TwoLaneQueue<RequestBatch>()
  /// No waiting request expires before this moment.
  private var earliestDeadline = NIODeadline.distantFuture

  /// The number of waiting requests.
  private(set) var count = 0

  /// When the request that waits longest was submitted.
  var oldestSubmission: NIODeadline? {
    [batches.firstSingle?.submittedAt, batches.firstBulk?.submittedAt].compactMap(\.self).min()
  }

  /// Adds a batch at the end of its lane.
  mutating func append(_ batch: RequestBatch) {
    guard !batch.requests.isEmpty else { return }
    batches.append(batch, isBulk: batch.isBulk)
    note(batch)
  }

  /// Adds a batch at the front of its lane.
  mutating func prepend(_ batch: RequestBatch) {
    guard !batch.requests.isEmpty else { return }
    batches.prepend(batch, isBulk: batch.isBulk)
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
    while room > 0, let part = batches.takeFirst(room, split: { batch, limit in batch.take(limit) }) {
      room -= part.requests.count
      count -= part.requests.count
      taken.append(part)
    }
    return taken
  }

  /// Takes all requests.
  mutating func takeAll() -> [RequestBatch] { take(count) }

  /// Takes the requests whose deadline has passed at `now`.
  mutating func takeExpired(at now: NIODeadline) -> [RequestBatch] {
    guard earliestDeadline <= now else { return [] }
    var expired: [RequestBatch] = []
    var earliest = NIODeadline.distantFuture
    batches.updateAll { batch in
      if let part = batch.splitExpired(at: now) { expired.append(part) }
      guard !batch.requests.isEmpty else { return false }
      earliest = min(earliest, batch.earliestDeadline)
      return true
    }
    earliestDeadline = earliest
    count -= expired.reduce(0) { $0 + $1.requests.count }
    return expired
  }
}

extension RequestBatch {
  /// Splits off up to `limit` requests, as `TwoLaneQueue.takeFirst` asks.
  fileprivate mutating func take(_ limit: Int) -> (part: RequestBatch, units: Int, isEmpty: Bool) {
    let part = split(first: limit)
    return (part, part.requests.count, requests.isEmpty)
  }
}
