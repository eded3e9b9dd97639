import FanfareCore
import PostgreSQL
import RDKafka
import Synchronization

/// Puts batches into the tables, several at a time: sends that are new in a transaction of their own, everything else
/// in a second one. Each brings its share of the sums, so that what can be read always adds up.
final class PostgreSQLBatchWriter: Sendable {
  /// For how many batches sends are looked for before they are copied, after one of them was there.
  private static let wariness = 64

  private let pool: PostgreSQLPool
  private let maximumDevices: Int
  private let fewest: Int
  private let state = Mutex(State())

  private struct State {
    /// Before how many further copies the sends are looked for.
    var wary = 0
  }

  /// `fewest`: how many sends are worth a statement that can only do what is usual.
  init(pool: PostgreSQLPool, maximumDevices: Int, fewest: Int) {
    self.pool = pool
    self.maximumDevices = maximumDevices
    self.fewest = max(1, fewest)
  }

  /// Puts a batch in. Returns how many records have turned out not to count.
  func write(_ plan: BatchPlan, at now: UnixTime) async throws -> Int {
    // The retention is a day at least, so today's partition is not dropped by anybody whose clock is nearly right.
    let today = BatchPlan.day(of: now)
    let oldDays = plan.days.filter { $0 < today }.sorted()
    let left = try await enterNew(plan.sends, oldDays)
    return try await pool.transaction { [self] connection in
      var transaction = try makeTransaction(connection, oldDays)
      return try transaction.write(left, endingAtLeast: fewest)
    }
  }

  private static let reaching = PreparedStatement(
    """
    INSERT INTO ledger_positions (topic, part, next_offset) SELECT * FROM unnest($1, $2, $3)
    ON CONFLICT (topic, part) DO UPDATE SET next_offset = excluded.next_offset
    """)

  /// Notes how far the log has been read. Not with the batches, of which a later one may be there first: whoever lost
  /// the earlier one with the server would never read it again.
  func reach(_ positions: [TopicPartition: Int64]) async throws {
    // In the order that every ledger keeps.
    let positions = positions.sorted { ($0.key.topic, $0.key.partition) < ($1.key.topic, $1.key.partition) }
    let parameters: [Parameter] = [
      .texts(positions.map(\.key.topic)), .int4s(positions.map(\.key.partition)), .int8s(positions.map(\.value)),
    ]
    try await pool.transaction { _ = try $0.query(Self.reaching, parameters) }
  }

  /// Copies the sends that are new. Returns what is left to be said of all. When a send turns out to be there, as after
  /// a restart or with a ledger that is ahead of this one, they are looked for: in this batch, and in those of some
  /// time to come.
  private func enterNew(_ sends: [BatchPlan.Send], _ oldDays: [Int32]) async throws -> [BatchPlan.Send] {
    let accepted = sends.filter { $0.acceptance != nil }
    guard accepted.count >= fewest else { return sends }
    var isWary = state.withLock { state in
      defer { state.wary = max(0, state.wary - 1) }
      return state.wary > 0
    }
    while true {
      do {
        let known = try await copy(accepted, oldDays, lookingFirst: isWary)
        var place = -1
        return sends.compactMap { send in
          guard send.acceptance != nil else { return send }
          place += 1
          return known.contains(place) ? send : send.rest
        }
      } catch let error as PostgreSQLError where error.sqlState == "23505" {
        state.withLock { $0.wary = Self.wariness }
        // Another ledger is entering the same sends at this moment.
        if isWary { return sends }
        isWary = true
      }
    }
  }

  /// Returns the places of those that were there already.
  private func copy(_ sends: [BatchPlan.Send], _ oldDays: [Int32], lookingFirst: Bool) async throws -> Set<Int> {
    try await pool.transaction { [self] connection in
      var transaction = try makeTransaction(connection, oldDays)
      let known = lookingFirst ? try SendTable.known(sends.map(\.key), on: connection) : []
      let new = known.isEmpty ? sends : sends.indices.filter { !known.contains($0) }.map { sends[$0] }
      if !new.isEmpty { try transaction.copy(new) }
      return known
    }
  }

  /// Transactions that run at once add to different rows of the totals, as a rule.
  private func makeTransaction(_ connection: PostgreSQLConnection, _ oldDays: [Int32]) throws -> BatchTransaction {
    try BatchTransaction(connection, keeping: oldDays, slot: .random(in: 0..<64), maximumDevices: maximumDevices)
  }
}
