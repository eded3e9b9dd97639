import NIOCore

/// Requests of one submission that wait together, all of them bulk or none. Cutting a batch in two copies no request.
struct RequestBatch: Sendable {
  /// The requests, in the order of submission.
  var requests: ArraySlice<HTTP2Request>
  /// Whom to tell about them.
  let submission: Submission
  /// When they were submitted; their timeouts count from here.
  let submittedAt: NIODeadline
  /// How often they have been sent already, without being processed.
  let resends: Int
  /// No request of the batch expires before this moment.
  private(set) var earliestDeadline: NIODeadline

  /// Whether its requests are (see `HTTP2Request.isBulk`).
  var isBulk: Bool { requests.first?.isBulk ?? false }

  /// A batch.
  init(_ requests: ArraySlice<HTTP2Request>, submission: Submission, submittedAt: NIODeadline, resends: Int = 0) {
    self.requests = requests
    self.submission = submission
    self.submittedAt = submittedAt
    self.resends = resends
    earliestDeadline = requests.lazy.map { $0.deadline(from: submittedAt) }.min() ?? .distantFuture
  }

  /// The batches that requests of one submission make: one, or those that are not bulk and those that are.
  static func batches(of requests: [HTTP2Request], submission: Submission, submittedAt: NIODeadline) -> [RequestBatch] {
    let bulk = requests.count(where: \.isBulk)
    guard bulk > 0, bulk < requests.count else {
      return [RequestBatch(requests[...], submission: submission, submittedAt: submittedAt)]
    }
    return [false, true].map { isBulk in
      RequestBatch(requests.filter { $0.isBulk == isBulk }[...], submission: submission, submittedAt: submittedAt)
    }
  }

  /// Takes the first `count` requests, or all, out of the batch.
  mutating func split(first count: Int) -> RequestBatch {
    var taken = self
    taken.requests = requests.prefix(count)
    requests = requests.dropFirst(count)
    return taken
  }

  /// Takes the requests out whose time is up at `now`; nil if there are none.
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
  /// The moment at which the request's time is up if it was submitted at `start`.
  func deadline(from start: NIODeadline) -> NIODeadline { start + TimeAmount(timeout) }
}
