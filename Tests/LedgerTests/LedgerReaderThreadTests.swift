import GRDB
import Testing

@testable import Ledger

/// The front end asks for reports on the event loops of its connections.
@Suite(.timeLimit(.minutes(1))) struct LedgerReaderThreadTests {
  /// Stands for an event loop: whatever runs here without suspending keeps everything else from running.
  private actor Loop {
    private var isReleased = false

    /// Asks the reader, and removes the lock that the reader waits for in another job of this loop.
    func check(_ reader: LedgerReader, releasing lock: DatabaseQueue) async throws {
      let check = Task { [self] in
        #expect(!isReleased, "the reader is asked first")
        try await reader.check()
      }
      let release = Task { [self] in
        isReleased = true
        try lock.close()
      }
      try await release.value
      try await check.value
    }
  }

  @Test func openingTheFileDoesNotBlockTheCallersEventLoop() async throws {
    let directory = try TemporaryDirectory()
    try LedgerStore(directory.settings()).close()
    // Until this connection is closed, every other one waits for the busy timeout.
    var configuration = Configuration()
    configuration.prepareDatabase { db in try db.execute(sql: "PRAGMA locking_mode = EXCLUSIVE") }
    let lock = try DatabaseQueue(path: directory.path(), configuration: configuration)
    try await lock.write { db in try db.execute(sql: "CREATE TABLE held (number INTEGER)") }
    var settings = directory.settings()
    settings.busyTimeout = .milliseconds(200)
    let impatient = LedgerReader(settings)
    await #expect(throws: LedgerError.self) { try await impatient.check() }

    settings.busyTimeout = .seconds(5)
    try await Loop().check(LedgerReader(settings), releasing: lock)
  }
}
