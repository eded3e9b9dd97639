/// Gathers the completions of one event-loop turn, so that each submitter is called once.
struct CompletionCollector {
  private var groups: [(submission: Submission, completions: [HTTP2Completion])] = []
  /// Where each submission's group is; filled only once there is a second group, for the usual turn has one.
  private var positions: [ObjectIdentifier: Int] = [:]

  /// Whether there is nothing to deliver.
  var isEmpty: Bool { groups.isEmpty }

  /// Adds one completion for `submission`.
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

  /// Calls every submitter with its completions and starts afresh.
  mutating func deliver() {
    guard !groups.isEmpty else { return }
    let delivered = groups
    groups.removeAll(keepingCapacity: true)
    positions.removeAll(keepingCapacity: true)
    for group in delivered { group.submission.complete(with: group.completions) }
  }
}
