import Synchronization

/// Tells those who wait where the listeners are, once all are bound, or why they never will be.
final class Readiness: Sendable {
  private let state = Mutex(State())

  private struct State {
    var outcome: Result<SimulatorEndpoints, any Error>?
    var waiters: [AsyncStream<Result<SimulatorEndpoints, any Error>>.Continuation] = []
  }

  /// Ends the waiting; only the first call counts.
  func settle(_ outcome: Result<SimulatorEndpoints, any Error>) {
    let waiters = state.withLock { state in
      guard state.outcome == nil else { return state.waiters }
      state.outcome = outcome
      defer { state.waiters = [] }
      return state.waiters
    }
    for waiter in waiters {
      waiter.yield(outcome)
      waiter.finish()
    }
  }

  /// The endpoints, as soon as they are known.
  func endpoints() async throws -> SimulatorEndpoints {
    let (stream, continuation) = AsyncStream.makeStream(of: Result<SimulatorEndpoints, any Error>.self)
    let outcome = state.withLock { state in
      if state.outcome == nil { state.waiters.append(continuation) }
      return state.outcome
    }
    if let outcome { return try outcome.get() }
    for await outcome in stream { return try outcome.get() }
    throw CancellationError()
  }
}
