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

/// Requests of one submission that wait together, all of them bulk or none. Splitting a batch copies no request.
struct RequestBatch: Sendable {
  /// The requests, in the order of submission.
  var requests: ArraySlice<HTTP2Request>
  let submission: Submission
  /// The start of their timeouts.
  let submittedAt: NIODeadline
  /// How often they have been sent before, without being processed.
  let resends: Int
  /// No request of the batch expires before this moment.
  private(set) var earliestDeadline: NIODeadline

  /// See `HTTP2Request.isBulk`.
  var isBulk: Bool { requests.first?.isBulk ?? false }

  init(_ requests: ArraySlice<HTTP2Request>, submission: Submission, submittedAt: NIODeadline, resends: Int = 0) {
    self.requests = requests
    self.submission = submission
    self.submittedAt = submittedAt
    self.resends = resends
    earliestDeadline = requests.lazy.map { $0.deadline(from: submittedAt) }.min() ?? .distantFuture
  }

  /// The batches of one submission: one, or one of single and one of bulk requests.
  static func batches(of requests: [HTTP2Request], submission: Submission, submittedAt: NIODeadline) -> [RequestBatch] {
    let bulk = requests.count(where: \.isBulk)
    guard bulk > 0, bulk < requests.count else {
      return [RequestBatch(requests[...], submission: submission, submittedAt: submittedAt)]
    }
    return [false, true].map { isBulk in
      RequestBatch(requests.filter { $0.isBulk == isBulk }[...], submission: submission, submittedAt: submittedAt)
    }
  }

  /// Splits off the first `count` requests, or all.
  mutating func split(first count: Int) -> RequestBatch {
    var taken = self
    taken.requests = requests.prefix(count)
    requests = requests.dropFirst(count)
    return taken
  }

  /// Splits off the requests whose deadline has passed at `now`; nil if there are none.
  mutating func splitExpired(at now: NIODeadline) -> RequestBatch? {
    guard earliestDeadline <= now else { return nil }
    let expired = requests.filter { $0.deadline(from: submittedAt) <= now }
    guard !expired.isEmpty else { return nil }
    let remaining = requests.filter { $0.deadline(from: submittedAt) > now }
    self = RequestBatch(remaining[...], submission: submission, submittedAt: submittedAt, resends: resends)
    return RequestBatch(expired[...], submission: submission, submittedAt: submittedAt, resends: resends)
  }
}

extension HTTP2Request {
  /// The deadline of a request that was submitted at `start`.
  func deadline(from start: NIODeadline) -> NIODeadline { start + TimeAmount(timeout) }
}

/// Receives the completions of one `submit` call.
final class Submission: Sendable {
  /// The generation of the requests; see `HTTP2ConnectionPool.submit`.
  let generation: Int
  private let completion: @Sendable ([HTTP2Completion]) -> Void

  init(generation: Int = 0, completion: @escaping @Sendable ([HTTP2Completion]) -> Void) {
    self.generation = generation
    self.completion = completion
  }

  func complete(with completions: [HTTP2Completion]) { completion(completions) }
}

/// Collects the completions of one event-loop turn, so that each submitter is called once.
struct CompletionCollector {
  private var groups: [(submission: Submission, completions: [HTTP2Completion])] = []
  /// The group of each submission; filled only when there is a second group, because most turns have one.
  private var positions: [ObjectIdentifier: Int] = [:]

  mutating func add(_ completion: HTTP2Completion, for submission: Submission) {
    if let last = groups.indices.last, groups[last].submission === submission {
      groups[last].completions.append(completion)
      return
    }
    if let position = positions[ObjectIdentifier(submission)] {
      groups[position].completions.append(completion)
      return
    }
    positions[ObjectIdentifier(submission)] = groups.count
    groups.append((submission, [completion]))
  }

  /// Ends every request of `batch` with `error`.
  mutating func add(_ error: HTTP2RequestError, for batch: RequestBatch) {
    for request in batch.requests {
      add(HTTP2Completion(ticket: request.ticket, result: .failure(error)), for: batch.submission)
    }
  }

  /// Calls every submitter with its completions, and empties the collector.
  mutating func deliver() {
    guard !groups.isEmpty else { return }
    let delivered = groups
    groups.removeAll(keepingCapacity: true)
    positions.removeAll(keepingCapacity: true)
    for group in delivered { group.submission.complete(with: group.completions) }
  }
}
