import RDKafka
import Synchronization

/// The queue between the ledger's consuming and writing loops. Bounded by the consumer's credit.
final class WorkQueue: Sendable {
  /// A unit of work for the writing loop.
  enum Work: Sendable {
    case record(LedgerBatch)
    case assigned([TopicPartition], Rebalance)
    case revoked([TopicPartition], Rebalance)
    case written(Written)
  }

  /// The result of writing a batch.
  struct Written: Sendable {
    /// The number that `PendingWrites.begin` returned.
    let number: Int
    /// The number of duplicates; nil when the shutdown deadline left no time to write the batch.
    let duplicates: Result<Int?, any Error>
  }

  private struct State {
    var works: [Work] = []
    var written: [Written] = []
    var isFinished = false
    var waiter: CheckedContinuation<Void, Never>?
  }

  private let state = Mutex(State())

  /// Appends work; ignored after `finish()`.
  func append(_ work: Work) {
    wake { state in
      if !state.isFinished { state.works.append(work) }
    }
  }

  /// Appends a result, which is returned before all other work.
  func append(_ written: Written) {
    wake { $0.written.append(written) }
  }

  /// Ends the queue; results of pending writes may still be appended.
  func finish() {
    wake { $0.isFinished = true }
  }

  /// The next work; nil when the queue is finished and empty, or the task is cancelled. For one reader.
  ///
  /// Consecutive batches are merged up to `limit` records, because a transaction's cost hardly depends on their number.
  /// Without room, only results are returned.
  func next(limit: Int, hasRoom: Bool = true) async -> Work? {
    while !Task.isCancelled {
      let (work, isFinished) = state.withLock { state in
        (Self.take(&state, limit: limit, hasRoom: hasRoom), state.isFinished && hasRoom)
      }
      if let work { return work }
      if isFinished { return nil }
      await withTaskCancellationHandler {
        await withCheckedContinuation { continuation in
          let isReady = state.withLock { state in
            let hasWork = !state.written.isEmpty || hasRoom && (!state.works.isEmpty || state.isFinished)
            guard !hasWork, !Task.isCancelled else { return true }
            state.waiter = continuation
            return false
          }
          if isReady { continuation.resume() }
        }
      } onCancel: {
        wake { _ in }
      }
    }
    return nil
  }

  private static func take(_ state: inout State, limit: Int, hasRoom: Bool) -> Work? {
    if !state.written.isEmpty { return .written(state.written.removeFirst()) }
    return hasRoom ? take(&state.works, limit: limit) : nil
  }

  private static func take(_ works: inout [Work], limit: Int) -> Work? {
    guard case .record(var batch)? = works.first else { return works.isEmpty ? nil : works.removeFirst() }
    var taken = 1
    while taken < works.count, case .record(let next) = works[taken], batch.records + next.records <= limit {
      batch.append(next)
      taken += 1
    }
    works.removeFirst(taken)
    return .record(batch)
  }

  private func wake(_ change: (inout State) -> Void) {
    let waiter = state.withLock { state in
      change(&state)
      defer { state.waiter = nil }
      return state.waiter
    }
    waiter?.resume()
  }
}
