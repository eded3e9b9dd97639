import Synchronization

/// A check that answers in time whatever becomes of it: who asks while it is being asked shares the answer, and nobody
/// waits longer than the limit.
final class BoundedCheck: Sendable {
  private struct State {
    var isRunning = false
    var lastWaiter = 0
    var waiters: [Int: AsyncStream<String?>.Continuation] = [:]
  }

  private let check: any ReadinessCheck
  private let limit: Duration
  private let state = Mutex(State())

  init(_ check: any ReadinessCheck, limit: Duration) {
    self.check = check
    self.limit = limit
  }

  /// The check's name.
  var name: String { check.name }

  /// What is wrong, be it that the check did not answer within the limit; nil when nothing is.
  func complaint() async -> String? {
    // The first answer counts: the check's or the clock's.
    let (answers, waiter) = AsyncStream.makeStream(of: String?.self, bufferingPolicy: .bufferingOldest(1))
    let (id, isFirst) = state.withLock { state in
      state.lastWaiter += 1
      state.waiters[state.lastWaiter] = waiter
      defer { state.isRunning = true }
      return (state.lastWaiter, !state.isRunning)
    }
    if isFirst {
      // Not a child of this task: a check that hangs must hold up nobody, and a later question must not start a second
      // one beside it.
      Task { finish(await check.complaint()) }
    }
    let limit = limit
    let clock = Task {
      try await Task.sleep(for: limit)
      waiter.yield("did not answer within \(limit)")
    }
    defer {
      clock.cancel()
      state.withLock { $0.waiters[id] = nil }
    }
    for await answer in answers { return answer }
    return "was not waited for"
  }

  private func finish(_ answer: String?) {
    let waiters = state.withLock { state in
      defer {
        state.isRunning = false
        state.waiters = [:]
      }
      return state.waiters.values
    }
    for waiter in waiters { waiter.yield(answer) }
  }
}
