import Synchronization
import Testing

@testable import fanfare_dev

@Suite(.timeLimit(.minutes(1))) struct TimeLimitTests {
  /// A process's last words, for one, are what it has said by then.
  @Test func whatIsMissingIsAskedWhenTheTimeIsOver() async throws {
    let questions = Mutex(0)
    @Sendable func what() -> String {
      questions.withLock { $0 += 1 }
      return "an answer"
    }
    try await withTimeLimit(.seconds(60), what()) {}
    #expect(questions.withLock { $0 } == 0)
    let error = await #expect(throws: TimeLimitExceeded.self) {
      try await withTimeLimit(.zero, what()) { try await Task.sleep(for: .seconds(60)) }
    }
    #expect(error?.description.hasSuffix("an answer") == true)
    #expect(questions.withLock { $0 } == 1)
  }
}
