import FoundationEssentials
import Synchronization

/// A worker in a process of its own, with another one to take over when it ends.
final class DemoWorker: Sendable {
  private let directory: URL
  private let environment: [String: String]
  private let current = Mutex<ChildProcess?>(nil)

  /// Nothing is started yet. The environment configures the role.
  init(directory: URL, environment: [String: String]) {
    self.directory = directory
    self.environment = environment
  }

  /// Starts it. Throws when that is impossible.
  func start() throws {
    let process = try ChildProcess.role(
      ["worker"], environment: environment, inWorkshop: true, directory: directory)
    current.withLock { $0 = process }
  }

  /// The id of the process; nil before there is one.
  var id: Int32? { current.withLock { $0?.id } }

  /// Ends it as a crash would.
  func kill() { current.withLock { $0 }?.destroy() }

  /// Starts another one if somebody has ended it; true if so. Throws, with its last words, when it has failed by
  /// itself, as the next one would.
  func restartIfEnded() throws -> Bool {
    guard let process = current.withLock({ $0 }), !process.isRunning else { return false }
    guard !process.hasFailed else { throw DemoError("the worker has failed\n\(process.lastWords)") }
    try start()
    return true
  }
}
