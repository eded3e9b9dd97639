import Dispatch
import FanfareCore
import Store
import Support
import Testing

@testable import Ledger

/// Behaviour that only the PostgreSQL ledger has.
@Suite(TestPostgreSQL.isAvailable, .timeLimit(.minutes(2))) struct PostgreSQLLedgerTests {
  private let id = SendID.random()
  private let day = Duration.seconds(86_400)

  /// Runs a test with a ledger, and with another client of its database.
  private func withLedger(
    retention days: Int64 = 2, lockTimeout: Duration = .seconds(2), clock: ManualClock = ManualClock(at: .start),
    log: LogRecorder? = nil, _ body: (PostgreSQLLedger, Client) async throws -> Void
  ) async throws {
    try await TestPostgreSQL.withSchema { database in
      var settings = PostgreSQLLedgerConfiguration(database: database)
      (settings.maximumDevices, settings.retention, settings.lockTimeout) = (4, day * Int(days), lockTimeout)
      // So that plans use the indexes even of small tables.
      var looking = database
      looking.settings.merge(["enable_seqscan": "off", "enable_bitmapscan": "off"]) { $1 }
      let client = Client(
        pool: try PostgreSQLPool(looking, logger: TestPostgreSQL.quietLogger),
        store: try Store(database, name: "the ledger", LedgerTables.migration, logger: TestPostgreSQL.quietLogger))
      defer { client.pool.close() }
      let ledger = try PostgreSQLLedger(settings, clock: clock, logger: log?.logger ?? TestPostgreSQL.quietLogger)
      defer { ledger.close() }
      try await body(ledger, client)
    }
  }

  private struct Client: Sendable {
    let pool: PostgreSQLPool
    let store: Store

    /// Returns the first column of a query's rows.
    func callAsFunction(_ sql: String) async throws -> [String] {
      try await pool.withConnection { connection in
        let rows = try connection.execute(sql)
        return try (0..<rows.count).map { try rows.text($0, 0) }
      }
    }
  }

  private static let partitions = """
    SELECT s.tableoid::regclass::text FROM ledger_sends AS s ORDER BY s.accepted_at, s.id
    """

  /// The error code tells which settings to change: those of a database, not of a file.
  @Test func unusableDatabaseHasItsOwnErrorCode() async throws {
    try await withLedger { ledger, look in
      _ = try await look("CREATE TABLE ledger_sends ()")
      let refusal = await #expect(throws: LedgerError.self) { _ = try await ledger.positions() }
      #expect(refusal?.code == .unusableDatabase)
    }
  }

  /// A front end may be upgraded before the ledger.
  @Test func readerOfAnEarlierReleasesTablesSaysSo() async throws {
    try await withLedger { ledger, look in
      try await ledger.write([.send(Samples.send(id))])
      _ = try await look("ALTER TABLE ledger_sends DROP COLUMN times")
      let error = await #expect(throws: LedgerError.self) { try await ledger.report(of: id, hub: .default) }
      #expect(error?.code == .notThere)
    }
  }

  @Test func daysHavePartitionsAndImpossibleDaysUseTheDefault() async throws {
    let clock = ManualClock(at: .start)
    try await withLedger(clock: clock) { ledger, look in
      let times = [.zero - day * 20, .zero - day, .zero, day, day * 9].map { UnixTime.start + $0 }
      try await ledger.write(times.map { .send(Samples.send(.random(), at: $0)) })
      let today = BatchPlan.day(of: .start)
      let own = [today - 1, today, today + 1].map { "ledger_sends_\($0)" }
      #expect(try await look(Self.partitions) == ["ledger_sends_rest"] + own + ["ledger_sends_rest"])
      // When the day has come, its sends move from the default partition to the day's, and are not counted again.
      let later = Samples.send(id, at: .start + day * 9)
      try await ledger.write([.send(later)])
      clock.set(.start + day * 9)
      try await ledger.write([.send(later), .status(Samples.status(id, at: later.acceptedAt))])
      #expect(
        try await look("SELECT DISTINCT s.tableoid::regclass::text FROM ledger_sends AS s WHERE day = \(today + 9)")
          == ["ledger_sends_\(today + 9)"])
      #expect(try await ledger.report(of: id, hub: .default)?.state == .settled)
      #expect(try await ledger.totals(hub: .default).accepted == 6)
    }
  }

  /// For example a dump that runs over midnight.
  @Test func longReaderDelaysPartitionsButNotWrites() async throws {
    let clock = ManualClock(at: .start)
    let log = LogRecorder()
    try await withLedger(lockTimeout: .milliseconds(50), clock: clock, log: log) { ledger, client in
      try await ledger.write([.send(Samples.send(id)), .status(Samples.status(id))])
      let reader = try await HeldLock("SELECT count(*) FROM ledger_sends", in: client.pool)
      let (later, other) = (UnixTime.start + day * 3, SendID.random())
      clock.set(later)
      try await ledger.write([.send(Samples.send(other, at: later)), .status(Samples.status(other, at: later))])
      await ledger.removeExpired()
      #expect(try await ledger.report(of: other, hub: .default)?.state == .settled)
      #expect(try await ledger.report(of: id, hub: .default)?.state == .settled)
      try await reader.release()
      #expect(log.count(of: "A day's partition could not be created") == 1)
      #expect(log.count(of: "Expired sends could not be removed") == 1)
    }
  }

  @Test func oldDayIsDroppedAndItsOpenSendsStay() async throws {
    let clock = ManualClock(at: .start)
    try await withLedger(clock: clock) { ledger, look in
      let (open, late) = (SendID.random(), SendID.random())
      let attempt = DispatchID.random()
      try await ledger.write([
        .send(Samples.send(id)), .status(Samples.status(id)), .status(Samples.status(id, settledAfter: .seconds(2))),
        .send(Samples.send(open)), .status(Samples.status(open, part: 0, of: 2, attempt: attempt)),
        .send(Samples.send(late)), .status(Samples.status(late, settledAfter: day * 2)),
      ])
      let time = UnixTime.start + day * 3
      clock.set(time)
      try await ledger.write([.send(Samples.send(.random(), at: time))])
      await ledger.removeExpired()
      #expect(
        try await look(Self.partitions) == [
          "ledger_sends_rest", "ledger_sends_rest", "ledger_sends_\(BatchPlan.day(of: time))",
        ])
      #expect(try await ledger.report(of: id, hub: .default) == nil)
      #expect(try await ledger.report(of: late, hub: .default)?.state == .settled)
      #expect(try await look("SELECT 'x' FROM ledger_duplicates").isEmpty)
      // The open send settles in the default partition.
      try await ledger.write([.status(Samples.status(open, part: 1, of: 2, attempt: attempt))])
      #expect(try await ledger.report(of: open, hub: .default)?.state == .settled)
      let totals = try await ledger.totals(hub: .default)
      #expect((totals.accepted, totals.settled, totals.duplicates) == (4, 3, 1))
    }
  }

  @Test func writesContinueWhileARemovalWaitsAndCancellationEndsIt() async throws {
    let clock = ManualClock(at: .start)
    try await withLedger(lockTimeout: .seconds(60), clock: clock) { ledger, client in
      try await ledger.write([.send(Samples.send(id)), .status(Samples.status(id))])
      let later = UnixTime.start + day * 3
      clock.set(later)
      try await ledger.write([.send(Samples.send(.random(), at: later))])
      let lock = try await HeldLock("SELECT 1 FROM ledger_days FOR SHARE", in: client.pool)
      let removal = Task { await ledger.removeExpired() }
      try await lock.waitUntilAwaited()
      try await ledger.write([.send(Samples.send(.random(), at: later))])
      removal.cancel()
      try await lock.release()
      await removal.value
      #expect(try await ledger.report(of: id, hub: .default) != nil)
      // After a cancellation the next removal is due at once.
      await ledger.removeExpired()
      #expect(try await ledger.report(of: id, hub: .default) == nil)
    }
  }

  @Test func lockedDayDoesNotKeepOtherDaysFromBeingDropped() async throws {
    let times = [UnixTime.start, .start + day]
    try await withLedger(clock: ManualClock(at: times[1])) { ledger, client in
      let sends = times.map { Samples.send(.random(), at: $0) }
      try await ledger.write(sends.flatMap { [.send($0), .status(Samples.status($0.id, at: $0.acceptedAt))] })
      let later = UnixTime.start + day * 5
      let days = DayPartitions(store: client.store, retention: day * 2, lockTimeout: .milliseconds(50), pause: .zero)
      _ = try await days.prepare(for: BatchPlan(ledger.batch([.send(Samples.send(.random(), at: later))])), at: later)
      let lock = try await HeldLock(
        "SELECT 1 FROM ledger_days WHERE day = \(BatchPlan.day(of: .start)) FOR SHARE", in: client.pool)
      let failure = await #expect(throws: PostgreSQLError.self) { try await days.removeExpired() }
      #expect(failure?.sqlState == "55P03")
      #expect(try await ledger.report(of: sends[0].id, hub: .default) != nil)
      #expect(try await ledger.report(of: sends[1].id, hub: .default) == nil)
      try await lock.release()
      try await days.removeExpired()
      #expect(try await ledger.report(of: sends[0].id, hub: .default) == nil)
    }
  }

  @Test func removalGoesThroughAllSlices() async throws {
    try await withLedger { ledger, client in
      let later = UnixTime.start + day * 3
      // Half of them on a day with a partition, half on a day that is too old for one.
      let times = (0..<14).map { $0 % 2 == 0 ? UnixTime.start : .start + (.zero - day * 20) }
      let sends = times.map { Samples.send(.random(), at: $0) }
      let attempt = DispatchID.random()
      let ends = zip(sends, times).dropLast(4).map { Sample.status(Samples.status($0.id, at: $1)) }
      let repeated = zip(sends, times).dropLast(4).map {
        Sample.status(Samples.status($0.id, at: $1, settledAfter: .seconds(2)))
      }
      let open = zip(sends, times).suffix(4).map {
        Sample.status(Samples.status($0.id, of: 2, attempt: attempt, at: $1))
      }
      try await ledger.write(sends.map(Sample.send) + ends + repeated + open)
      let days = DayPartitions(store: client.store, retention: day * 2, lockTimeout: .seconds(60), slice: 2)
      _ = try await days.prepare(for: BatchPlan(ledger.batch([.send(Samples.send(.random(), at: later))])), at: later)
      try await days.removeExpired()
      for (number, send) in sends.enumerated() {
        #expect((try await ledger.report(of: send.id, hub: .default) != nil) == (number >= 10), "\(number)")
      }
      let left = try await client(
        "SELECT count(*)::text FROM ledger_duplicates UNION ALL SELECT count(*)::text FROM ledger_parts")
      #expect(left == ["0", "4"])
    }
  }

  @Test func sendWrittenWhileItsDayIsDroppedIsKeptAndCountedOnce() async throws {
    let clock = ManualClock(at: .start)
    try await withLedger(retention: 30, clock: clock) { ledger, client in
      try await ledger.write([.send(Samples.send(id))])
      // Stands for another ledger, for which the day is too old.
      let (later, late) = (UnixTime.start + day * 3, SendID.random())
      clock.set(later)
      let days = DayPartitions(store: client.store, retention: day * 2, lockTimeout: .seconds(60))
      _ = try await days.prepare(for: BatchPlan(ledger.batch([.send(Samples.send(.random(), at: later))])), at: later)
      // A transaction updates the totals last: while it waits for them its sends are inserted and not yet visible.
      let lock = try await HeldLock("LOCK TABLE ledger_totals IN EXCLUSIVE MODE", in: client.pool)
      async let writing: Int = ledger.write([.send(Samples.send(late))])
      defer { lock.allowRelease() }
      try await lock.waitUntilAwaited()
      async let dropping: Void = days.removeExpired()
      defer { lock.allowRelease() }
      try await lock.waitUntilAwaited(by: 2)
      try await lock.release()
      _ = try await writing
      try await dropping
      #expect(try await ledger.report(of: late, hub: .default)?.state == .accepted)
      try await ledger.write([.status(Samples.status(late))])
      let totals = try await ledger.totals(hub: .default)
      #expect((totals.accepted, totals.settled, totals.unannounced) == (2, 1, 0))
      let left = try await client("SELECT 'x' FROM ledger_days WHERE day = \(BatchPlan.day(of: .start))")
      #expect(left.isEmpty, "the day was dropped")
    }
  }

  @Test func positionsAreStoredOnlyByReach() async throws {
    try await withLedger { ledger, _ in
      let batch = ledger.batch([.send(Samples.send(id)), .status(Samples.status(id))])
      _ = try await ledger.write(batch)
      #expect(try await ledger.positions().isEmpty, "an earlier batch may still be pending")
      try await ledger.reach(batch.positions)
      #expect(try await ledger.positions() == batch.positions)
    }
  }

  @Test func everyQueryUsesAnIndex() async throws {
    try await withLedger { ledger, look in
      try await ledger.write([.send(Samples.send(id))])
      for (condition, index) in [
        ("hub_key = 1", "hub_key_accepted_at_id"), ("sender_key = 1 AND sender = 'a'", "sender_key_accepted_at_id"),
        ("audience_key = 1 AND audience = 'a'", "audience_key_accepted_at_id"),
      ] {
        let plan = try await look(
          """
          EXPLAIN SELECT id FROM ledger_sends
          WHERE hub = 'default' AND (accepted_at, id) < (5, 'ffffffff-ffff-ffff-ffff-ffffffffffff') AND day <= 0
            AND \(condition)
          ORDER BY accepted_at DESC, id DESC LIMIT 10
          """)
        #expect(plan.contains { $0.contains(index) } && !plan.contains { $0.contains("Sort") }, "\(plan)")
      }
    }
  }

  @Test func filteredRowsAreReadManyAtATime() async throws {
    try await withLedger { ledger, client in
      try await ledger.write((0..<100).map { .send(Samples.send(.random(), at: .start + .seconds($0))) })
      let (found, scans) = try await client.pool.transaction { connection in
        let page = try SendPageReader(
          Session(.postgreSQL(connection)), SendQuery(hub: .default, sender: "carol", user: "bob", limit: 1)
        )
        .page()
        let sum = "SELECT sum(idx_scan)::bigint FROM pg_stat_xact_user_tables WHERE relname LIKE 'ledger_sends%'"
        return (page.sends.count, try connection.execute(sum).integer(0, 0))
      }
      #expect(found == 0)
      // One statement scans each partition once.
      #expect((1...4).contains(scans))
    }
  }
}
