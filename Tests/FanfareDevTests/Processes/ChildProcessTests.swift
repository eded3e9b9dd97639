import Foundation
import Synchronization
import Testing

@testable import fanfare_dev

@Suite struct ChildProcessTests {
  /// Otherwise its resource usage would count for the next measured child.
  @Test(.timeLimit(.minutes(1))) func destroyedProcessIsReaped() throws {
    let directory = FileManager.default.temporaryDirectory.appending(path: "fanfare-\(UUID())")
    try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: false)
    defer { try? FileManager.default.removeItem(at: directory) }  // A failure leaves only a temporary directory.
    let process = try ChildProcess(
      ["100"], name: "sleep", program: URL(fileURLWithPath: "/bin/sleep"), directory: directory)
    #expect(kill(process.id, 0) == 0)
    process.destroy()
    #expect(kill(process.id, 0) == -1)
    #expect(errno == ESRCH)
    // A second call has no effect.
    process.destroy()
  }
}

@Suite(.timeLimit(.minutes(1))) struct TimeLimitTests {
  /// For example, the message may contain the last log lines of a process at that moment.
  @Test func timeoutMessageIsComputedAtTimeout() async throws {
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
