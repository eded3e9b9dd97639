/// Where the completions of one `submit` call go.
final class Submission: Sendable {
  private let completion: @Sendable ([HTTP2Completion]) -> Void

  /// A submission that reports to `completion`.
  init(completion: @escaping @Sendable ([HTTP2Completion]) -> Void) { self.completion = completion }

  /// Hands completions to the submitter.
  func complete(with completions: [HTTP2Completion]) { completion(completions) }
}
