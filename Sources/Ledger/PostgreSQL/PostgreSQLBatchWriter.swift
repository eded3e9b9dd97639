import FanfareCore
import PostgreSQL
import RDKafka
import Synchronization

/// Puts batches into the tables, several at a time: sends that are new in a transaction of their own, everything else in a second one. Each brings
/// its share of the sums, so that what can be read always adds up.
final class PostgreSQLBatchWriter: Sendable {
  /// For how many batches sends are looked for before they are copied, after one of them was there.
  private static let wariness = 64

  private let pool: PostgreSQLPool
  private let maximumDevices: Int
  private let fewest: Int
  private let state = Mutex(State())

  private struct State {
    /// The number of the next batch.
    var number = 0
    /// The latest batch that has said how far a partition has been read.
    var said: [TopicPartition: Int] = [:]
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
  func write(_ plan: BatchPlan) async throws -> Int {
    let number = state.withLock { state in
      state.number += 1
      return state.number
    }
    let left = try await enterNew(plan.sends)
    return try await pool.transaction { [self] connection in
      var transaction = makeTransaction(connection)
      return try transaction.write(left, positions: positions(plan, of: number), endingAtLeast: fewest)
    }
  }

  /// How far the batch reaches, where no later one has said more: of two under way at once the later may be first. Should that one fail, the log is
  /// read again from further back than need be.
  private func positions(_ plan: BatchPlan, of number: Int) -> [(key: TopicPartition, value: Int64)] {
    state.withLock { state in
      plan.positions.filter { partition, _ in
        let last = max(number, state.said[partition] ?? 0)
        state.said[partition] = last
        return last == number
      }
    }
  }

  /// Copies the sends that are new. Returns what is left to be said of all. When a send turns out to be there, as after a restart or with a ledger that is
  /// ahead of this one, they are looked for: in this batch, and in those of some time to come.
  private func enterNew(_ sends: [BatchPlan.Send]) async throws -> [BatchPlan.Send] {
    let accepted = sends.filter { $0.acceptance != nil }
    guard accepted.count >= fewest else { return sends }
    var isWary = state.withLock { state in
      defer { state.wary = max(0, state.wary - 1) }
      return state.wary > 0
    }
    while true {
      do {
        let known = try await copy(accepted, lookingFirst: isWary)
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
  private func copy(_ sends: [BatchPlan.Send], lookingFirst: Bool) async throws -> Set<Int> {
    try await pool.transaction { [self] connection in
      let known = lookingFirst ? try SendTable.known(sends.map(\.key), on: connection) : []
      let new = known.isEmpty ? sends : sends.indices.filter { !known.contains($0) }.map { sends[$0] }
      var transaction = makeTransaction(connection)
      if !new.isEmpty { try transaction.copy(new) }
      return known
    }
  }

  /// Transactions that run at once add to different rows of the totals, as a rule.
  private func makeTransaction(_ connection: PostgreSQLConnection) -> BatchTransaction {
    BatchTransaction(connection, slot: .random(in: 0..<64), maximumDevices: maximumDevices)
  }
}
