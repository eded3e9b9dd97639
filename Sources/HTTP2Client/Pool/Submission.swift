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
