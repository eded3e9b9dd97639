import RDKafka
import Synchronization

/// What the reading half has for the writing half, in order, and what has been written. Bounded by the credit given to
/// the consumer.
final class WorkQueue: Sendable {
  /// One thing to do.
  enum Work: Sendable {
    case record(LedgerBatch)
    case assigned([TopicPartition], Rebalance)
    case revoked([TopicPartition], Rebalance)
    case written(Written)
  }

  /// How the writing of a batch has ended.
  struct Written: Sendable {
    /// Which of the batches it was.
    let number: Int
    /// How many of its records did not count; nil when there was no time left to write it.
    let duplicates: Result<Int?, any Error>
  }

  private struct State {
    var works: [Work] = []
    var written: [Written] = []
    var isFinished = false
    var waiter: CheckedContinuation<Void, Never>?
  }

  private let state = Mutex(State())

  /// Adds work; ignored after `finish()`.
  func append(_ work: Work) {
    wake { state in
      if !state.isFinished { state.works.append(work) }
    }
  }

  /// A batch has been written: comes before everything else.
  func append(_ written: Written) {
    wake { $0.written.append(written) }
  }

  /// Nothing more will come, except from what is being written.
  func finish() {
    wake { $0.isFinished = true }
  }

  /// The next thing to do: batches that lie one after another come as one, up to about `limit` records, because a
  /// transaction costs the same for one record as for a thousand. While there is no room for more, only what has been
  /// written comes. Nil when finished and empty, or when the task is cancelled. For one reader.
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
