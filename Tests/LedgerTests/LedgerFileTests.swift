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

  @Test func readerReopensARecreatedFile() async throws {
    let store = try SQLiteLedger(directory.settings())
    try await store.write([.send(Samples.send(id))])
    let reader = SQLiteLedgerReader(directory.settings())
    #expect(try await reader.report(of: id, hub: .default) != nil)
    store.close()
    for suffix in ["", "-wal", "-shm"] where FileManager.default.fileExists(atPath: directory.path() + suffix) {
      try FileManager.default.removeItem(atPath: directory.path() + suffix)
    }
    #expect(await error { try await reader.check() }?.code == .notThere)
    let second = try SQLiteLedger(directory.settings())
    #expect(try await reader.report(of: id, hub: .default) == nil)
    try await second.check()
  }

  @Test func retentionRemovesAllRowsOfADeadLetteredSend() async throws {
    var settings = directory.settings()
    settings.retention = .seconds(86_400)
    let later = UnixTime.start + .seconds(3 * 86_400)
    let store = try SQLiteLedger(settings, clock: ManualClock(at: later))
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

  /// The reasons are the store's.
  @Test func unusableFileIsRefusedWithItsPath() async throws {
    let queue = try DatabaseQueue(path: directory.path())
    try await queue.write { db in try db.execute(sql: "CREATE TABLE recipes (name TEXT)") }
    #expect(await error { try await SQLiteLedgerReader(directory.settings()).check() }?.code == .unusable)
    try Data("this is not a database, but it is as long as a header".utf8).write(
      to: URL(filePath: directory.path("text")))
    for name in ["ledger.sqlite", "text", "missing/ledger.sqlite"] {
      let refusal = await error { _ = try SQLiteLedger(directory.settings(name)) }
      #expect(refusal?.code == .unusable && refusal?.message.contains(name) == true)
    }
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

  @Test func everyQueryUsesAnIndex() async throws {
    let store = try SQLiteLedger(directory.settings())
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
    let store = try SQLiteLedger(settings, clock: clock)
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
    func check(_ reader: SQLiteLedgerReader, releasing lock: DatabaseQueue) async throws {
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
    try SQLiteLedger(directory.settings()).close()
    // Until this connection is closed, all others wait for the busy timeout.
    var configuration = Configuration()
    configuration.prepareDatabase { db in try db.execute(sql: "PRAGMA locking_mode = EXCLUSIVE") }
    let lock = try DatabaseQueue(path: directory.path(), configuration: configuration)
    try await lock.write { db in try db.execute(sql: "CREATE TABLE held (number INTEGER)") }
    var settings = directory.settings()
    settings.busyTimeout = .milliseconds(200)
    let impatient = SQLiteLedgerReader(settings)
    await #expect(throws: LedgerError.self) { try await impatient.check() }

    settings.busyTimeout = .seconds(5)
    try await Loop().check(SQLiteLedgerReader(settings), releasing: lock)
  }
}
