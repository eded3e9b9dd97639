import Synchronization

/// The port of a server, for callers that wait until the server listens.
package final class ListeningPort: Sendable {
  private enum State {
    case unknown(waiting: [CheckedContinuation<Int?, Never>])
    case known(Int?)
  }

  private let state = Mutex(State.unknown(waiting: []))

  package init() {}

  /// Sets the port and resumes all waiting callers; nil if the server ended before it listened.
  /// Later calls have no effect.
  package func resolve(_ port: Int?) {
    let waiting: [CheckedContinuation<Int?, Never>] = state.withLock { state in
      guard case .unknown(let waiting) = state else { return [] }
      state = .known(port)
      return waiting
    }
    for continuation in waiting { continuation.resume(returning: port) }
  }

  /// Returns the port as soon as it is known; nil if the server ended before it listened.
  package func value() async -> Int? {
    await withCheckedContinuation { continuation in
      let known: Int?? = state.withLock { state in
        switch state {
        case .known(let port): return .some(port)
        case .unknown(let waiting):
          state = .unknown(waiting: waiting + [continuation])
          return .none
        }
      }
      if let known { continuation.resume(returning: known) }
    }
  }
}
