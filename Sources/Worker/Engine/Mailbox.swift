import Synchronization

/// Where everything that happens on other threads waits for the engine: one lock per batch, one wake-up per turn.
final class Mailbox: Sendable {
  private struct State: Sendable {
    var mail = Mail()
    var isEmpty = true
    var reader: CheckedContinuation<Void, Never>?
  }

  private let state = Mutex(State())

  /// Adds to what waits, and wakes the engine if it sleeps. From any thread.
  func post(_ add: (inout Mail) -> Void) {
    let reader = state.withLock { state in
      add(&state.mail)
      state.isEmpty = false
      defer { state.reader = nil }
      return state.reader
    }
    reader?.resume()
  }

  /// Everything that has come since the last call; suspends until there is something. One caller, who is woken by a
  /// post and by nothing else: whoever cancels it also posts.
  func next() async -> Mail {
    await withCheckedContinuation { continuation in
      let isEmpty = state.withLock { state in
        if state.isEmpty { state.reader = continuation }
        return state.isEmpty
      }
      if !isEmpty { continuation.resume() }
    }
    return state.withLock { state in
      defer {
        state.mail = Mail()
        state.isEmpty = true
      }
      return state.mail
    }
  }
}
