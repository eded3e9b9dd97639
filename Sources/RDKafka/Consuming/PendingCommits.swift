import Synchronization

/// The commits whose end a caller waits for.
final class PendingCommits: Sendable {
  /// A caller that waits for the end of a commit.
  typealias Waiter = CheckedContinuation<Result<Void, RDKafkaError>, Never>

  private struct State {
    var waiters: [Int: (waiter: Waiter, deadline: ContinuousClock.Instant)] = [:]
    var next = 1
    var isClosed = false
  }

  private let state = Mutex(State())

  /// Adds a waiter.
  ///
  /// - Returns: Its number, or nil when no commit will end any more.
  func add(_ waiter: Waiter, deadline: ContinuousClock.Instant) -> Int? {
    state.withLock { state in
      guard !state.isClosed else { return nil }
      defer { state.next += 1 }
      state.waiters[state.next] = (waiter, deadline)
      return state.next
    }
  }

  /// Resumes the waiter with the result of its commit. Has no effect the second time.
  func end(_ number: Int, _ result: Result<Void, RDKafkaError>) {
    state.withLock { $0.waiters.removeValue(forKey: number) }?.waiter.resume(returning: result)
  }

  /// Resumes the waiters whose deadline has passed.
  func expire(now: ContinuousClock.Instant) {
    let expired = state.withLock { state in
      let expired = state.waiters.filter { $0.value.deadline <= now }
      for number in expired.keys { state.waiters[number] = nil }
      return expired.values.map(\.waiter)
    }
    let error = RDKafkaError(code: .timedOut, message: "the commit was not answered in time")
    for waiter in expired { waiter.resume(returning: .failure(error)) }
  }

  /// Resumes all waiters with the error, and refuses later ones.
  func endAll(_ error: RDKafkaError) {
    let waiters = state.withLock { state in
      state.isClosed = true
      defer { state.waiters = [:] }
      return state.waiters.values.map(\.waiter)
    }
    for waiter in waiters { waiter.resume(returning: .failure(error)) }
  }
}
