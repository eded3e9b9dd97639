import Dispatch
import Synchronization

/// Runs blocking work, such as password hashing, on a few threads of its own.
///
/// Blocking work must not occupy the cooperative pool, nor all cores.
final class HashingPool: Sendable {
  private struct State {
    var running = 0
    /// In order of arrival.
    var waiting: [@Sendable () -> Void] = []
  }

  private let concurrency: Int
  private let maximumWaiting: Int
  private let state = Mutex(State())
  private let queue = DispatchQueue(label: "fanfare.password-hashing", attributes: .concurrent)

  /// Runs at most `concurrency` jobs at a time; at most `maximumWaiting` more wait.
  init(concurrency: Int, maximumWaiting: Int) {
    self.concurrency = concurrency
    self.maximumWaiting = maximumWaiting
  }

  /// Runs work on one of the threads. Throws `.overloaded` at once if too many jobs are waiting.
  func run<Value: Sendable>(_ work: @escaping @Sendable () -> Value) async throws(AuthenticationError) -> Value {
    let value: Value? = await withCheckedContinuation { continuation in
      let isAccepted = submit { continuation.resume(returning: work()) }
      if !isAccepted { continuation.resume(returning: nil) }
    }
    guard let value else { throw .overloaded }
    return value
  }

  private func submit(_ job: @escaping @Sendable () -> Void) -> Bool {
    enum Step { case start, wait, refuse }
    let step = state.withLock { state -> Step in
      if state.running < concurrency {
        state.running += 1
        return .start
      }
      guard state.waiting.count < maximumWaiting else { return .refuse }
      state.waiting.append(job)
      return .wait
    }
    if step == .start { queue.async { self.work(job) } }
    return step != .refuse
  }

  private func work(_ job: @Sendable () -> Void) {
    job()
    while let next = next() { next() }
  }

  private func next() -> (@Sendable () -> Void)? {
    state.withLock { state in
      guard state.waiting.isEmpty else { return state.waiting.removeFirst() }
      state.running -= 1
      return nil
    }
  }
}
