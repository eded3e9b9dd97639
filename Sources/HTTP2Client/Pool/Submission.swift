/// Where the completions of one `submit` call go.
final class Submission: Sendable {
  /// Which connections the requests may share; see `HTTP2ConnectionPool.submit`.
  let generation: Int
  private let completion: @Sendable ([HTTP2Completion]) -> Void

  /// A submission that reports to `completion`.
  init(generation: Int = 0, completion: @escaping @Sendable ([HTTP2Completion]) -> Void) {
    self.generation = generation
    self.completion = completion
  }

  /// Hands completions to the submitter.
  func complete(with completions: [HTTP2Completion]) { completion(completions) }
}
