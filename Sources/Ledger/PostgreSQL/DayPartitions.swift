import FanfareCore
import Store
import Synchronization

/// The partitions of the sends table: one for each day of acceptance.
///
/// A day's partition is created with the day's first send and dropped as a whole after the retention. The default
/// partition `ledger_sends_rest` takes sends that stay longer and sends of days without a partition; so several ledgers
/// can create and drop partitions without coordination.
final class DayPartitions: Sendable {
  /// How far the records' time advances between two removals of expired sends.
  private static let interval: Duration = .seconds(3600)
  /// The statement timeout for moving and removing sends.
  private static let timeout: Duration = .seconds(600)

  private let store: Store
  private let retention: Duration
  /// Sets `lock_timeout`: later statements queue behind one that waits for a lock.
  private let setLockTimeout: String
  private let slice: Int
  private let pause: Duration
  private let state = Mutex(State())

  private struct State {
    /// Days known to have a partition.
    var known: Set<Int32> = []
    /// The latest time in any record so far, at most the present; see `Retention`.
    var newest: UnixTime?
    /// When creating a partition may be retried.
    var createAgain: ContinuousClock.Instant?
    /// `newest` at the last removal of expired sends.
    var lastRemoval: UnixTime?
    /// When a failed removal may be retried, and the number of failures in a row.
    var removeAgain: ContinuousClock.Instant?
    var removalFailures = 0
  }

  /// `slice` is the number of rows that one statement examines; between statements the work can be cancelled. `pause`
  /// is the backoff after a failure.
  init(
    store: Store, retention: Duration, lockTimeout: Duration, slice: Int = 5000, pause: Duration = .seconds(30)
  ) {
    self.store = store
    self.slice = slice
    self.pause = pause
    self.retention = retention
    setLockTimeout = "SET LOCAL lock_timeout = \(max(1, lockTimeout.milliseconds))"
  }

  /// Creates the partitions for a batch's sends, of days within the retention and not in the future.
  ///
  /// - Returns: Whether one could not be created because the table is locked, for instance by a dump. Its sends go to
  ///   the default partition until the next attempt.
  func prepare(for plan: BatchPlan, at now: UnixTime) async throws -> Bool {
    let missing = state.withLock { state -> [Int32] in
      let times = [state.newest, plan.newest.map { min($0, now) }].compactMap(\.self)
      guard let newest = times.max() else { return [] }
      state.newest = newest
      if let again = state.createAgain, .now < again { return [] }
      let kept = max(0, BatchPlan.day(of: newest + (.zero - retention)))
      let last = max(kept, BatchPlan.day(of: now + .seconds(86_400)))
      return plan.days.subtracting(state.known).filter { (kept...last).contains($0) }.sorted()
    }
    for day in missing {
      do {
        try await create(day)
      } catch let error as PostgreSQLError where ["55P03", "57014"].contains(error.sqlState) {
        state.withLock { $0.createAgain = .now + pause }
        return true
      }
      state.withLock { _ = $0.known.insert(day) }
    }
    return false
  }

  private static let insertDay = PreparedStatement(
    "INSERT INTO ledger_days (day) VALUES ($1) ON CONFLICT (day) DO NOTHING")
  private static let deleteDay = PreparedStatement("DELETE FROM ledger_days WHERE day = $1")
  private static let selectOldDays = PreparedStatement("SELECT day FROM ledger_days WHERE day < $1 ORDER BY day")

  /// Creates a day's partition, unless it exists, and moves the day's sends there from the default partition.
  private func create(_ day: Int32) async throws {
    try await store.transaction { [setLockTimeout] connection in
      try connection.executeScript(setLockTimeout)
      guard try connection.query(Self.insertDay, [.int4(day)]).affected == 1 else { return }
      let table = "ledger_sends_\(day)"
      // Created as a table and then attached: CREATE TABLE … PARTITION OF takes an ACCESS EXCLUSIVE lock on the parent.
      // Moving rows from the default partition may take long.
      try connection.executeScript(
        """
        SET LOCAL statement_timeout = \(Self.timeout.milliseconds);
        CREATE TABLE \(table) (LIKE ledger_sends INCLUDING ALL) WITH (fillfactor = 40);
        LOCK TABLE ledger_sends_rest IN ACCESS EXCLUSIVE MODE;
        INSERT INTO \(table) SELECT * FROM ledger_sends_rest WHERE day = \(day);
        DELETE FROM ledger_sends_rest WHERE day = \(day);
        ALTER TABLE ledger_sends ATTACH PARTITION \(table) FOR VALUES FROM (\(day)) TO (\(day + 1))
        """, timeout: Self.timeout)
    }
  }

  /// Removes sends older than the retention, if that is due. Totals are not reduced.
  ///
  /// Ledgers may write meanwhile; only writes to a day that is being dropped wait. Throws `CancellationError` after the
  /// statement during which its task was cancelled; then the next call goes on at once. Other failures are retried with
  /// a growing backoff. A day that cannot be dropped does not keep the others from being dropped.
  func removeExpired() async throws {
    let due = state.withLock { state -> UnixTime? in
      guard let newest = state.newest else { return nil }
      if let again = state.removeAgain {
        guard again <= .now else { return nil }
      } else if let last = state.lastRemoval, newest < last + Self.interval {
        return nil
      }
      (state.lastRemoval, state.removeAgain) = (newest, nil)
      return newest
    }
    guard let newest = due else { return }
    do {
      try await removeExpired(at: newest)
      state.withLock { $0.removalFailures = 0 }
    } catch {
      state.withLock { state in
        var wait = Duration.zero
        if !(error is CancellationError) {
          // Each attempt examines whole days, and makes others wait as long as it waits for locks.
          wait = Backoff(first: pause, limit: Self.interval).wait(state.removalFailures)
          state.removalFailures += 1
        }
        state.removeAgain = .now + wait
      }
      throw error
    }
  }

  private func removeExpired(at newest: UnixTime) async throws {
    let oldest = newest + (.zero - retention)
    // The day of `oldest` still has younger sends.
    let first = BatchPlan.day(of: oldest)
    let days = try await store.read { session in
      try session.all(Self.selectOldDays, [.integer(Int64(first))]) { Int32(try $0.integer(0)) }
    }
    var failure: PostgreSQLError?
    for day in days {
      do { try await drop(day, settledBefore: oldest) } catch let error as PostgreSQLError where error.sqlState != nil {
        failure = error
        continue
      }
      state.withLock { _ = $0.known.remove(day) }
    }
    try await clearDefaultPartition(
      settledBefore: oldest, openBefore: newest + (.zero - max(retention, Retention.open)), first: first)
    if let failure { throw failure }
  }

  /// SQL condition: whether a send is settled and older than the retention.
  private static func isExpired(settledBefore oldest: UnixTime) -> String {
    "is_announced AND settled_parts >= known_parts AND settled_at < \(oldest.milliseconds)"
  }

  /// Drops a day's partition, after selecting the few sends that stay. Deleting the row of `ledger_days` waits for the
  /// transactions that write to the day, and blocks later ones; see `BatchTransaction`.
  private func drop(_ day: Int32, settledBefore oldest: UnixTime) async throws {
    // Task.isCancelled is not available on the connection's thread.
    let cancellation = Cancellation()
    try await withTaskCancellationHandler {
      try await store.transaction { [self] connection in
        try connection.executeScript(setLockTimeout)
        guard try connection.query(Self.deleteDay, [.int4(day)]).affected == 1 else { return }
        let table = "ledger_sends_\(day)"
        try connection.executeScript(
          "CREATE TEMPORARY TABLE ledger_stay (hub text COLLATE \"C\", id uuid) ON COMMIT DROP")
        var place: Place?
        repeat {
          guard !cancellation.hasHappened.load(ordering: .relaxed) else { throw CancellationError() }
          place = try forEachSlice(
            table, after: place, judging: Self.isExpired(settledBefore: oldest),
            to: "INSERT INTO ledger_stay SELECT hub, id FROM slice WHERE NOT goes", on: connection)
        } while place != nil
        try connection.executeScript(
          """
          SET LOCAL statement_timeout = \(Self.timeout.milliseconds);
          ALTER TABLE ledger_sends DETACH PARTITION \(table);
          INSERT INTO ledger_sends SELECT s.* FROM ledger_stay AS k JOIN \(table) AS s ON s.hub = k.hub AND s.id = k.id;
          DROP TABLE \(table);
          DROP TABLE ledger_stay
          """, timeout: Self.timeout)
      }
    } onCancel: {
      cancellation.hasHappened.store(true, ordering: .relaxed)
    }
  }

  private final class Cancellation: Sendable {
    let hasHappened = Atomic(false)
  }

  /// Removes expired sends from the default partition, and the other tables' rows of removed sends.
  private func clearDefaultPartition(settledBefore oldest: UnixTime, openBefore: UnixTime, first: Int32) async throws {
    var place: Place?
    repeat {
      try Task.checkCancellation()
      place = try await store.transaction { [self, place] connection in
        try forEachSlice(
          "ledger_sends_rest", after: place,
          judging: "\(Self.isExpired(settledBefore: oldest)) OR accepted_at < \(openBefore.milliseconds)",
          to: "DELETE FROM ledger_sends_rest WHERE ctid = ANY (ARRAY(SELECT place FROM slice WHERE goes))",
          on: connection)
      }
    } while place != nil
    for table in ["ledger_attempts", "ledger_parts", "ledger_duplicates"] {
      var removed = slice
      while removed == slice {
        try Task.checkCancellation()
        removed = try await store.transaction { [slice] connection in
          try connection.execute(
            """
            DELETE FROM \(table) WHERE ctid = ANY (ARRAY(
              SELECT t.ctid FROM \(table) AS t WHERE t.day < \(first)
                AND NOT EXISTS (SELECT 1 FROM ledger_sends AS s WHERE s.hub = t.hub AND s.id = t.send AND s.day = t.day)
              LIMIT \(slice)))
            """
          ).affected
        }
      }
    }
  }

  /// The primary key of a row of sends.
  private struct Place {
    let high: UInt64
    let low: UInt64
    let hub: String
    let day: Int32
  }

  /// Runs a statement on the next slice of a table of sends, in the order of its key. The statement sees the rows as
  /// `slice`, with the condition's value as `goes`. Returns the slice's last key; nil when there was no row left.
  private func forEachSlice(
    _ table: String, after place: Place?, judging condition: String, to action: String,
    on connection: PostgreSQLConnection
  ) throws -> Place? {
    let rows = try connection.execute(
      """
      WITH slice AS MATERIALIZED (
        SELECT ctid AS place, id, hub, day, coalesce(\(condition), false) AS goes FROM \(table)
        \(place == nil ? "" : "WHERE (id, hub, day) > ($1, $2, $3)") ORDER BY id, hub, day LIMIT \(slice)
      ), done AS (\(action))
      SELECT id, hub, day FROM slice ORDER BY id DESC, hub DESC, day DESC LIMIT 1
      """, place.map { [.uuid(high: $0.high, low: $0.low), .text($0.hub), .int4($0.day)] } ?? [])
    guard rows.count == 1 else { return nil }
    let (high, low) = try rows.uuid(0, 0)
    return Place(high: high, low: low, hub: try rows.text(0, 1), day: Int32(try rows.integer(0, 2)))
  }
}
