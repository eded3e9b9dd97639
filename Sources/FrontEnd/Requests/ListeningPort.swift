import Synchronization

/// The port of a server, known once it listens. Resolved once; later resolutions change nothing.
final class ListeningPort: Sendable {
  private enum State {
    case unknown(waiting: [CheckedContinuation<Int?, Never>])
    case known(Int?)
  }

  private let state = Mutex(State.unknown(waiting: []))

  /// Tells the port to all who wait for it; nil: there will be none.
  func resolve(_ port: Int?) {
    let waiting: [CheckedContinuation<Int?, Never>] = state.withLock { state in
      guard case .unknown(let waiting) = state else { return [] }
      state = .known(port)
      return waiting
    }
    for continuation in waiting { continuation.resume(returning: port) }
  }

  /// The port, as soon as it is known; nil when there is none.
  func value() async -> Int? {
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
