import FanfareCore
import PostgreSQL
import Synchronization

/// The partitions of the table of sends: one for each day of acceptance, made when a send of that day comes, dropped as
/// a whole when its sends have been kept for long enough. What must stay longer goes to the rest, where everything is
/// that has no partition; so a day may have one or not, and several ledgers make and drop them without agreeing
/// beforehand.
final class DayPartitions: Sendable {
  /// How far the records' time must have moved until old sends are looked for again.
  private static let interval: Duration = .seconds(3600)
  /// The longest that one statement may take that moves or removes sends.
  private static let timeout: Duration = .seconds(600)

  private let pool: PostgreSQLPool
  private let retention: Duration
  /// Has a statement end that waits too long for others to be done with a table: all who come later wait behind it.
  private let patience: String
  private let slice: Int
  private let pause: Duration
  private let state = Mutex(State())

  private struct State {
    /// Days that have a partition, as far as is known.
    var known: Set<Int32> = []
    /// The latest time that any record has spoken of, but never one in the future. Age is measured from here and not
    /// from the clock: a ledger that is rebuilt from an old log must not drop a send before its repetitions have come
    /// by.
    var newest: UnixTime?
    /// When a partition that could not be made may be tried again.
    var makeAgain: ContinuousClock.Instant?
    /// What that was when old sends were last looked for.
    var lastRetired: UnixTime?
    /// When what could not be removed may be tried again, and how often it was in vain.
    var retireAgain: ContinuousClock.Instant?
    var retireFailures = 0
  }

  /// `slice`: how many rows a statement goes through where there may be any number. Between two such work can be given
  /// up, and none takes long, unless much stays beyond its day: that is moved at once, and passed over again by each.
  /// `pause`: how long after something has failed it is tried again.
  init(
    pool: PostgreSQLPool, retention: Duration, lockTimeout: Duration, slice: Int = 5000, pause: Duration = .seconds(30)
  ) {
    self.pool = pool
    self.slice = slice
    self.pause = pause
    self.retention = retention
    patience = "SET LOCAL lock_timeout = \(max(1, Int(lockTimeout / .milliseconds(1))))"
  }

  /// Makes the partitions that the batch's sends need: of days that are neither too old to be kept nor still to come.
  ///
  /// - Returns: Whether some could not be made, because somebody reads the table for long (a dump, say). Their sends go
  ///   with the rest until it is tried again.
  func prepare(for plan: BatchPlan, at now: UnixTime) async throws -> Bool {
    let missing = state.withLock { state -> [Int32] in
      let times = [state.newest, plan.newest.map { min($0, now) }].compactMap(\.self)
      guard let newest = times.max() else { return [] }
      state.newest = newest
      if let again = state.makeAgain, .now < again { return [] }
      let kept = max(0, BatchPlan.day(of: newest + (.zero - retention)))
      let last = max(kept, BatchPlan.day(of: now + .seconds(86_400)))
      return plan.days.subtracting(state.known).filter { (kept...last).contains($0) }.sorted()
    }
    for day in missing {
      do {
        try await make(day)
      } catch let error as PostgreSQLError where ["55P03", "57014"].contains(error.sqlState) {
        state.withLock { $0.makeAgain = .now + pause }
        return true
      }
      state.withLock { _ = $0.known.insert(day) }
    }
    return false
  }

  private static let enter = PreparedStatement("INSERT INTO ledger_days (day) VALUES ($1) ON CONFLICT (day) DO NOTHING")
  private static let leave = PreparedStatement("DELETE FROM ledger_days WHERE day = $1")
  private static let old = PreparedStatement("SELECT day FROM ledger_days WHERE day < $1 ORDER BY day")

  /// Makes a day's partition, unless another ledger has. Sends of the day that are in the rest move there.
  private func make(_ day: Int32) async throws {
    try await pool.transaction { [patience] connection in
      try connection.executeScript(patience)
      guard try connection.query(Self.enter, [.int4(day)]).affected == 1 else { return }
      let table = "ledger_sends_\(day)"
      // What has gathered in the rest may be much. It is attached, because to be created as a partition would lock out
      // everybody who reads.
      try connection.executeScript(
        """
        SET LOCAL statement_timeout = \(Int(Self.timeout / .milliseconds(1)));
        CREATE TABLE \(table) (LIKE ledger_sends INCLUDING ALL) WITH (fillfactor = 40);
        LOCK TABLE ledger_sends_rest IN ACCESS EXCLUSIVE MODE;
        INSERT INTO \(table) SELECT * FROM ledger_sends_rest WHERE day = \(day);
        DELETE FROM ledger_sends_rest WHERE day = \(day);
        ALTER TABLE ledger_sends ATTACH PARTITION \(table) FOR VALUES FROM (\(day)) TO (\(day + 1))
        """, timeout: Self.timeout)
    }
  }

  /// Removes what is older than the retention, once in a while. Totals keep what they have counted. Sends may be
  /// entered meanwhile, by whichever ledger; only those of a day that is just being dropped wait. Throws
  /// `CancellationError` after the statement in which its task is cancelled: what is begun then is tried again at once,
  /// and what has failed after a pause that grows. A day that somebody uses for long does not keep the others.
  func retire() async throws {
    let due = state.withLock { state -> UnixTime? in
      guard let newest = state.newest else { return nil }
      if let again = state.retireAgain {
        guard again <= .now else { return nil }
      } else if let last = state.lastRetired, newest < last + Self.interval {
        return nil
      }
      (state.lastRetired, state.retireAgain) = (newest, nil)
      return newest
    }
    guard let newest = due else { return }
    do {
      try await retire(at: newest)
      state.withLock { $0.retireFailures = 0 }
    } catch {
      state.withLock { state in
        var wait = Duration.zero
        if !(error is CancellationError) {
          // Each try looks through whole days, and has others wait for as long as it waits itself.
          wait = min(pause * (1 << min(state.retireFailures, 10)), Self.interval)
          state.retireFailures += 1
        }
        state.retireAgain = .now + wait
      }
      throw error
    }
  }

  private func retire(at newest: UnixTime) async throws {
    let oldest = newest + (.zero - retention)
    // The day of `oldest` still has sends that are younger.
    let first = BatchPlan.day(of: oldest)
    let days = try await pool.read { connection in
      let rows = try connection.query(Self.old, [.int4(first)])
      return try (0..<rows.count).map { Int32(try rows.integer($0, 0)) }
    }
    var failure: PostgreSQLError?
    for day in days {
      do { try await drop(day, settledBefore: oldest) } catch let error as PostgreSQLError where error.sqlState != nil {
        failure = error
        continue
      }
      state.withLock { _ = $0.known.remove(day) }
    }
    try await clearRest(
      settledBefore: oldest, openBefore: newest + (.zero - max(retention, Retention.open)), first: first)
    if let failure { throw failure }
  }

  /// Whether a send may go.
  private static func isOver(settledBefore oldest: UnixTime) -> String {
    "is_announced AND settled_parts >= known_parts AND settled_at < \(oldest.milliseconds)"
  }

  /// Drops a day's partition. What stays is looked for before anybody is locked out, and is little. To leave
  /// `ledger_days` waits for those who are entering sends of the day, and has others wait; see `BatchTransaction`.
  private func drop(_ day: Int32, settledBefore oldest: UnixTime) async throws {
    // The connection's thread knows nothing of tasks.
    let cancellation = Cancellation()
    try await withTaskCancellationHandler {
      try await pool.transaction { [self] connection in
        try connection.executeScript(patience)
        guard try connection.query(Self.leave, [.int4(day)]).affected == 1 else { return }
        let table = "ledger_sends_\(day)"
        try connection.executeScript(
          "CREATE TEMPORARY TABLE ledger_stay (hub text COLLATE \"C\", id uuid) ON COMMIT DROP")
        var place: Place?
        repeat {
          guard !cancellation.hasHappened.load(ordering: .relaxed) else { throw CancellationError() }
          place = try goThrough(
            table, after: place, judging: Self.isOver(settledBefore: oldest),
            to: "INSERT INTO ledger_stay SELECT hub, id FROM slice WHERE NOT goes", on: connection)
        } while place != nil
        try connection.executeScript(
          """
          SET LOCAL statement_timeout = \(Int(Self.timeout / .milliseconds(1)));
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

  /// Removes from the rest what is over, and what will not end any more; and what the other tables hold of sends that
  /// are gone.
  private func clearRest(settledBefore oldest: UnixTime, openBefore: UnixTime, first: Int32) async throws {
    var place: Place?
    repeat {
      try Task.checkCancellation()
      place = try await pool.transaction { [self, place] connection in
        try goThrough(
          "ledger_sends_rest", after: place,
          judging: "\(Self.isOver(settledBefore: oldest)) OR accepted_at < \(openBefore.milliseconds)",
          to: "DELETE FROM ledger_sends_rest WHERE ctid = ANY (ARRAY(SELECT place FROM slice WHERE goes))",
          on: connection)
      }
    } while place != nil
    for table in ["ledger_attempts", "ledger_parts", "ledger_duplicates"] {
      var removed = slice
      while removed == slice {
        try Task.checkCancellation()
        removed = try await pool.transaction { [slice] connection in
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

  /// A row of sends, by its key.
  private struct Place {
    let high: UInt64
    let low: UInt64
    let hub: String
    let day: Int32
  }

  /// Does something with the next slice of a table of sends, in the order of its key: with rows `slice`, of which each
  /// says whether it `goes`. Returns the last of them; nil when there was none.
  private func goThrough(
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
