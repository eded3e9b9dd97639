import FanfareCore
import RDKafka
import Store
import Synchronization

/// Writes batches to PostgreSQL, several at a time.
///
/// New sends are written in one transaction, everything else in a second one. Each updates the totals, so that readers
/// always see consistent numbers.
final class PostgreSQLBatchWriter: Sendable {
  /// The number of batches whose sends are looked up before the `COPY`, after a `COPY` met an existing send.
  private static let batchesWithLookUp = 64

  private let store: Store
  private let maximumDevices: Int
  private let fewest: Int
  private let state = Mutex(State())

  private struct State {
    /// The number of further batches with a look-up.
    var lookUpsLeft = 0
  }

  /// `fewest` is the fewest sends for which a specialised statement is used.
  init(store: Store, maximumDevices: Int, fewest: Int) {
    self.store = store
    self.maximumDevices = maximumDevices
    self.fewest = max(1, fewest)
  }

  /// Writes a batch. Returns the number of duplicates.
  func write(_ plan: BatchPlan, at now: UnixTime) async throws -> Int {
    // The retention is at least a day, so no ledger drops today's partition, unless its clock is off by hours.
    let today = BatchPlan.day(of: now)
    let oldDays = plan.days.filter { $0 < today }.sorted()
    let left = try await insertNew(plan.sends, oldDays)
    return try await store.transaction { [self] connection in
      var transaction = try makeTransaction(connection, oldDays)
      return try transaction.write(left, settlingAtLeast: fewest)
    }
  }

  /// Inserts the new sends by `COPY`. Returns the records left. After a `COPY` has met an existing send, as after a
  /// restart, this and later batches look up their sends first.
  private func insertNew(_ sends: [BatchPlan.Send], _ oldDays: [Int32]) async throws -> [BatchPlan.Send] {
    let accepted = sends.filter { $0.acceptance != nil }
    guard accepted.count >= fewest else { return sends }
    var looksUpFirst = state.withLock { state in
      defer { state.lookUpsLeft = max(0, state.lookUpsLeft - 1) }
      return state.lookUpsLeft > 0
    }
    while true {
      do {
        let known = try await copy(accepted, oldDays, lookingUpFirst: looksUpFirst)
        var place = -1
        return sends.compactMap { send in
          guard send.acceptance != nil else { return send }
          place += 1
          return known.contains(place) ? send : send.rest
        }
      } catch let error as PostgreSQLError where error.sqlState == "23505" {
        state.withLock { $0.lookUpsLeft = Self.batchesWithLookUp }
        // Another ledger is inserting the same sends at this moment.
        if looksUpFirst { return sends }
        looksUpFirst = true
      }
    }
  }

  /// Returns the indexes of the sends that existed already.
  private func copy(_ sends: [BatchPlan.Send], _ oldDays: [Int32], lookingUpFirst: Bool) async throws -> Set<Int> {
    try await store.transaction { [self] connection in
      var transaction = try makeTransaction(connection, oldDays)
      let known = lookingUpFirst ? try SendTable.known(sends.map(\.key), on: connection) : []
      let new = known.isEmpty ? sends : sends.indices.filter { !known.contains($0) }.map { sends[$0] }
      if !new.isEmpty { try transaction.copy(new) }
      return known
    }
  }

  /// A random slot makes concurrent transactions update different rows of the totals, as a rule.
  private func makeTransaction(_ connection: PostgreSQLConnection, _ oldDays: [Int32]) throws -> BatchTransaction {
    try BatchTransaction(connection, keeping: oldDays, slot: .random(in: 0..<64), maximumDevices: maximumDevices)
  }
}
