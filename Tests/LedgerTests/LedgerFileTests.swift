import FanfareCore
import Foundation
import GRDB
import Support
import Testing

@testable import Ledger

@Suite(.timeLimit(.minutes(1))) struct LedgerFileTests {
  private let directory: TemporaryDirectory
  private let id = SendID.timeOrdered(at: .start)

  init() throws {
    directory = try TemporaryDirectory()
  }

  private func error(_ body: () async throws -> Void) async -> LedgerError? {
    do { try await body() } catch { return error as? LedgerError }
    return nil
  }

  @Test func readerThrowsNotThereUntilTheFileExists() async throws {
    let reader = LedgerReader(directory.settings())
    #expect(await error { try await reader.check() }?.code == .notThere)
    #expect(await error { _ = try await reader.report(of: id, hub: .default) }?.code == .notThere)
    let store = try LedgerStore(directory.settings())
    try await reader.check()
    #expect(try await reader.report(of: id, hub: .default) == nil)
    try await store.write([.send(Samples.send(id)), .status(Samples.status(id, devices: [Samples.device()]))])
    #expect(try await reader.report(of: id, hub: .default) == (try await store.report(of: id, hub: .default)))
    #expect(try await reader.totals(hub: .default).settled == 1)
    // The file can still be read after its writer has closed it.
    store.close()
    #expect(try await LedgerReader(directory.settings()).totals(hub: .default).accepted == 1)
  }

  @Test func readerReopensARecreatedFile() async throws {
    let store = try LedgerStore(directory.settings())
    try await store.write([.send(Samples.send(id))])
    let reader = LedgerReader(directory.settings())
    #expect(try await reader.report(of: id, hub: .default) != nil)
    store.close()
    for suffix in ["", "-wal", "-shm"] where FileManager.default.fileExists(atPath: directory.path() + suffix) {
      try FileManager.default.removeItem(atPath: directory.path() + suffix)
    }
    #expect(await error { try await reader.check() }?.code == .notThere)
    let second = try LedgerStore(directory.settings())
    #expect(try await reader.report(of: id, hub: .default) == nil)
    try await second.check()
  }

  @Test func fileBelongsToItsOwnerAlone() async throws {
    let store = try LedgerStore(directory.settings())
    try await store.write([.send(Samples.send(id))])
    for suffix in ["", "-wal", "-shm"] {
      let attributes = try FileManager.default.attributesOfItem(atPath: directory.path() + suffix)
      #expect((attributes[.posixPermissions] as? Int) == 0o600, "\(suffix)")
    }
  }

  @Test func fileThatIsDeletedIsNotWrittenOn() async throws {
    let store = try LedgerStore(directory.settings())
    try await store.write([.send(Samples.send(id))])
    let moved = directory.path() + ".moved"
    try FileManager.default.moveItem(atPath: directory.path(), toPath: moved)
    #expect(await error { try await store.check() }?.code == .unavailable)
    let refused = await error { _ = try await store.write([.send(Samples.send(.random()))]) }
    #expect(refused?.code == .unavailable && refused?.message.contains("deleted or replaced") == true)
    try FileManager.default.moveItem(atPath: moved, toPath: directory.path())
    try await store.check()
    #expect(try await store.totals(hub: .default).accepted == 1)
  }

  @Test func severalProcessesOpenANewFileAtOnce() async throws {
    let settings = directory.settings()
    let id = id
    try await withThrowingTaskGroup { group in
      for _ in 0..<6 {
        group.addTask {
          // On separate threads, because opening blocks.
          try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
            Thread.detachNewThread { continuation.resume(with: Result { _ = try LedgerStore(settings) }) }
          }
        }
      }
      try await group.waitForAll()
    }
    let store = try LedgerStore(settings)
    try await store.write([.send(Samples.send(id))])
    #expect(try await store.totals(hub: .default).accepted == 1)
  }

  @Test func retentionRemovesAllRowsOfADeadLetteredSend() async throws {
    var settings = directory.settings()
    settings.retention = .seconds(86_400)
    let later = UnixTime.start + .seconds(3 * 86_400)
    let store = try LedgerStore(settings, clock: ManualClock(at: later))
    try await store.write([
      .send(Samples.send(id)), .status(Samples.status(id, part: 0, of: 2)),
      .status(Samples.status(id, state: .deadLettered)),
    ])
    let file = try DatabaseQueue(path: settings.path)
    func rows() async throws -> [Int?] {
      try await file.read { db in
        try ["parts", "attempts", "duplicates"].map { try Int.fetchOne(db, sql: "SELECT count(*) FROM ledger_\($0)") }
      }
    }
    #expect(try await rows() == [1, 1, 1])
    try await store.write([.send(Samples.send(.random(), at: later))])
    #expect(try await store.report(of: id, hub: .default) == nil)
    #expect(try await rows() == [0, 0, 0])
  }

  @Test func anotherApplicationsFileIsRefused() async throws {
    let queue = try DatabaseQueue(path: directory.path())
    try await queue.write { db in try db.execute(sql: "CREATE TABLE recipes (name TEXT)") }
    #expect(await error { _ = try LedgerStore(directory.settings()) }?.code == .unusable)
    #expect(await error { try await LedgerReader(directory.settings()).check() }?.code == .unusable)
    try Data("this is not a database, but it is as long as a header".utf8).write(
      to: URL(filePath: directory.path("text")))
    #expect(await error { _ = try LedgerStore(directory.settings("text")) }?.code == .unusable)
  }

  @Test func laterReleasesFileIsRefused() async throws {
    try LedgerStore(directory.settings()).close()
    let queue = try DatabaseQueue(path: directory.path())
    try await queue.writeWithoutTransaction { db in try db.execute(sql: "PRAGMA user_version = 99") }
    let refusal = try #require(await error { _ = try LedgerStore(directory.settings()) })
    #expect(refusal.code == .unusable)
    #expect(refusal.message.contains("later release (schema 99"))
    #expect(await error { try await LedgerReader(directory.settings()).check() }?.code == .unusable)
  }

  @Test func errorNamesAMissingDirectory() async throws {
    let settings = LedgerStoreConfiguration(path: directory.path("missing/ledger.sqlite"))
    let failure = try #require(await error { _ = try LedgerStore(settings) })
    #expect(failure.message.contains("missing/ledger.sqlite"))
  }

  @Test func storedColumnsRoundTrip() {
    let devices = [
      Samples.device(), Samples.device(.wns, .unconfirmed, number: .max),
      DeviceResult(
        registration: RegistrationID(high: .max, low: 0), platform: .fcm, outcome: .expired, reason: "é",
        status: 70_000, attempts: 300),
    ]
    let stored = StoredDevices.bytes(devices)
    #expect(StoredDevices.decode(stored) == devices)
    for length in 1..<stored.count where StoredDevices.decode(stored.prefix(length)) != nil {
      #expect(StoredDevices.decode(stored.prefix(length)).map { devices.starts(with: $0) } == true)
    }
    #expect(OutcomeCounts(stored: OutcomeCounts(devices).storedBytes) == OutcomeCounts(devices))
    #expect(OutcomeCounts(stored: Data([0xFF, 0x01])) == nil)
    for outcome in DeviceResult.Outcome.allCases { #expect(StoredCode.outcome(StoredCode.code(outcome)) == outcome) }
    for platform in Platform.allCases { #expect(Platform(stored: Int64(platform.code)) == platform) }
    for state in StatusRecord.State.allCases { #expect(StoredCode.state(StoredCode.code(state)) == state) }
  }

  @Test func failedTransactionChangesNothing() async throws {
    let store = try LedgerStore(directory.settings())
    try await store.write([.send(Samples.send(id))])
    let queue = try DatabaseQueue(path: directory.path())
    try await queue.write { db in
      try db.execute(
        sql: "CREATE TRIGGER fail BEFORE UPDATE ON device_totals BEGIN SELECT RAISE(ABORT, 'disk'); END")
    }
    let other = SendID.timeOrdered(at: .start)
    try await store.write([.status(Samples.status(other, devices: [Samples.device()]))])
    let before = try await store.totals(hub: .default)
    await #expect(throws: LedgerError.self) {
      try await store.write([.status(Samples.status(id, devices: [Samples.device()]))])
    }
    #expect(try await store.totals(hub: .default) == before)
    #expect(try await store.report(of: id, hub: .default)?.state == .accepted)
  }

  @Test func everyQueryUsesAnIndex() async throws {
    let store = try LedgerStore(directory.settings())
    try await store.write([.send(Samples.send(id))])
    let queue = try DatabaseQueue(path: directory.path())
    for (condition, index) in [
      ("", "newest"), ("AND sender = 'a'", "newest_by_sender"), ("AND audience = 'a'", "newest_by_audience"),
    ] {
      let plan = try await queue.read { db in
        try Row.fetchAll(
          db,
          sql: """
            EXPLAIN QUERY PLAN SELECT id FROM sends WHERE hub = 1 AND (accepted_at, id) < (5, x'FF') \(condition)
            ORDER BY accepted_at DESC, id DESC
            """
        ).map { $0["detail"] as String }
      }
      #expect(plan.count == 1 && plan[0].contains("INDEX \(index) "), "\(plan)")
    }
  }

  @Test func transactionRemovesALimitedNumberOfRows() async throws {
    let clock = ManualClock(at: .start)
    var settings = directory.settings()
    settings.retention = .seconds(2 * 86_400)
    let store = try LedgerStore(settings, clock: clock)
    func advance(to time: UnixTime) async throws {
      clock.set(time)
      try await store.write([.send(Samples.send(SendID.timeOrdered(at: time), at: time))])
    }
    let ids = (0..<Retention.minimum + 100).map { _ in SendID.random() }
    try await store.write(
      ids.flatMap { [Sample.send(Samples.send($0)), .status(Samples.status($0, state: .noTarget))] })
    func left() async throws -> Int {
      var left = 0
      for id in ids where try await store.report(of: id, hub: .default) != nil { left += 1 }
      return left
    }
    try await advance(to: .start + .seconds(3 * 86_400))
    #expect(try await left() == 100)
    try await advance(to: .start + .seconds(3 * 86_400) + .seconds(1))
    #expect(try await left() == 0)
  }

  /// Stands for an event loop: a job that blocks keeps all other jobs from running.
  private actor Loop {
    private var isReleased = false

    /// Checks the reader; a later job of this loop releases the lock that the reader waits for.
    func check(_ reader: LedgerReader, releasing lock: DatabaseQueue) async throws {
      let check = Task { [self] in
        #expect(!isReleased, "the check has to start before the release")
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

  /// The front end reads reports on the event loops of its connections.
  @Test func openingTheFileDoesNotBlockTheCallersEventLoop() async throws {
    let directory = try TemporaryDirectory()
    try LedgerStore(directory.settings()).close()
    // Until this connection is closed, all others wait for the busy timeout.
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
