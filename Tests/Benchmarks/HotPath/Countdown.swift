import Synchronization

/// Lets one task wait until so many things have happened.
final class Countdown: Sendable {
  private struct State {
    var left: Int
    var waiter: CheckedContinuation<Void, Never>?
  }

  private let state: Mutex<State>

  init(_ count: Int) {
    state = Mutex(State(left: count))
  }

  /// So many have happened. From any thread.
  func subtract(_ count: Int) {
    let waiter = state.withLock { state in
      state.left -= count
      defer { if state.left <= 0 { state.waiter = nil } }
      return state.left <= 0 ? state.waiter : nil
    }
    waiter?.resume()
  }

  /// Returns when all have happened.
  func wait() async {
    await withCheckedContinuation { continuation in
      let isDone = state.withLock { state in
        if state.left > 0 { state.waiter = continuation }
        return state.left <= 0
      }
      if isDone { continuation.resume() }
    }
  }
}
