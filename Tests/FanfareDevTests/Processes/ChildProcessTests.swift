import Foundation
import Testing

@testable import fanfare_dev

@Suite struct ChildProcessTests {
  /// Else what it has used is taken for what the next measured child has.
  @Test(.timeLimit(.minutes(1))) func aDestroyedProcessHasBeenWaitedFor() throws {
    let directory = FileManager.default.temporaryDirectory.appending(path: "fanfare-\(UUID())")
    try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: false)
    defer { try? FileManager.default.removeItem(at: directory) }  // Of a temporary directory nothing depends on it.
    let process = try ChildProcess(
      ["100"], name: "sleep", program: URL(fileURLWithPath: "/bin/sleep"), directory: directory)
    #expect(kill(process.id, 0) == 0)
    process.destroy()
    #expect(kill(process.id, 0) == -1)
    #expect(errno == ESRCH)
    // A second time does nothing.
    process.destroy()
  }
}
