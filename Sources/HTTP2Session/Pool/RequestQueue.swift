import DequeModule
import NIOCore

/// The requests of a pool that wait for a stream, first come first served.
struct RequestQueue {
  private var batches: Deque<RequestBatch> = []
  /// No waiting request expires before this moment.
  private var earliestDeadline = NIODeadline.distantFuture

  /// How many requests wait.
  private(set) var count = 0

  /// When the request that waits longest was submitted.
  var oldestSubmission: NIODeadline? { batches.first?.submittedAt }

  /// Adds a batch behind all others.
  mutating func append(_ batch: RequestBatch) {
    guard !batch.requests.isEmpty else { return }
    batches.append(batch)
    count += batch.requests.count
    earliestDeadline = min(earliestDeadline, batch.earliestDeadline)
  }

  /// Puts a batch before all others.
  mutating func prepend(_ batch: RequestBatch) {
    guard !batch.requests.isEmpty else { return }
    batches.prepend(batch)
    count += batch.requests.count
    earliestDeadline = min(earliestDeadline, batch.earliestDeadline)
  }

  /// Takes up to `limit` requests from the front.
  mutating func take(_ limit: Int) -> [RequestBatch] {
    var taken: [RequestBatch] = []
    var room = limit
    while room > 0, var batch = batches.popFirst() {
      let part = batch.split(first: room)
      if !batch.requests.isEmpty { batches.prepend(batch) }
      room -= part.requests.count
      count -= part.requests.count
      taken.append(part)
    }
    return taken
  }

  /// Takes out everything.
  mutating func takeAll() -> [RequestBatch] { take(count) }

  /// Takes out the requests whose time is up at `now`.
  mutating func takeExpired(at now: NIODeadline) -> [RequestBatch] {
    guard earliestDeadline <= now else { return [] }
    var expired: [RequestBatch] = []
    var kept: Deque<RequestBatch> = []
    earliestDeadline = .distantFuture
    while var batch = batches.popFirst() {
      if let part = batch.splitExpired(at: now) {
        expired.append(part)
        count -= part.requests.count
      }
      guard !batch.requests.isEmpty else { continue }
      earliestDeadline = min(earliestDeadline, batch.earliestDeadline)
      kept.append(batch)
    }
    batches = kept
    return expired
  }
}
