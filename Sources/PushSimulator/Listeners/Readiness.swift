import Synchronization

/// Publishes the endpoints when all listeners are bound, or the error that prevented it.
final class Readiness: Sendable {
  private let state = Mutex(State())

  private struct State {
    var outcome: Result<SimulatorEndpoints, any Error>?
    var waiters: [AsyncStream<Result<SimulatorEndpoints, any Error>>.Continuation] = []
  }

  /// Sets the outcome; only the first call counts.
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

  /// Waits for the endpoints.
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
