import Synchronization

/// A port that is known once the server listens. Resolved once; later resolutions change nothing.
final class BoundPort: Sendable {
  private enum State {
    case waiting([CheckedContinuation<Int?, Never>])
    case known(Int?)
  }

  private let state = Mutex(State.waiting([]))

  /// Sets the port, nil when there will be none, and wakes who waits for it.
  func resolve(_ port: Int?) {
    let waiters: [CheckedContinuation<Int?, Never>] = state.withLock { state in
      guard case .waiting(let waiters) = state else { return [] }
      state = .known(port)
      return waiters
    }
    for waiter in waiters { waiter.resume(returning: port) }
  }

  /// The port, when it is known; nil when there is none.
  func value() async -> Int? {
    await withCheckedContinuation { continuation in
      let known: Int?? = state.withLock { state in
        switch state {
        case .known(let port): return .some(port)
        case .waiting(let waiters):
          state = .waiting(waiters + [continuation])
          return .none
        }
      }
      if let known { continuation.resume(returning: known) }
    }
  }
}
