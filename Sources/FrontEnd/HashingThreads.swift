import DequeModule
import FoundationEssentials
import Synchronization

/// Hashes passwords on a few threads of its own, fewer than the cores and of low priority, so that a flood of logins
/// leaves the rest of the process responsive. All hubs of a process share them.
///
/// Logins of users at addresses where they were authenticated lately are hashed before those of strangers. Each kind
/// has a queue of its own, so that strangers cannot fill that of the others. Nor can one user: only a few of its logins
/// at an address come before strangers, further ones wait among them.
package final class HashingThreads: Sendable {
  /// The kinds of log-ins.
  package enum Login: Sendable {
    /// A user at an address where it was authenticated lately, by a digest of both.
    case known(Int)
    case stranger
  }

  /// The most logins of one user at one address that wait before strangers. Requests with the same password share one
  /// hash, so that a user who does not guess needs one or two.
  static let maximumWaitingOfOne = 4

  private typealias Job = @Sendable () -> Void

  private struct State {
    var running = 0
    /// In order of arrival.
    var known: Deque<(user: Int, job: Job)> = []
    var strangers: Deque<Job> = []
    /// How many of `known` each user has.
    var places: [Int: Int] = [:]

    mutating func next() -> Job? {
      guard let (user, job) = known.popFirst() else { return strangers.popFirst() }
      let left = places[user, default: 1] - 1
      places[user] = left > 0 ? left : nil
      return job
    }
  }

  private enum Step { case start, wait, refuse }

  private let threads: Int
  private let maximumWaiting: Int
  private let state = Mutex(State())

  /// - Parameters:
  ///   - threads: The most passwords that are hashed at the same time; nil: one fewer than the cores, 1 to 4. A
  ///     yescrypt hash of usual cost needs 16 MiB.
  ///   - maximumWaiting: The most that wait in each queue.
  package init(threads: Int? = nil, maximumWaiting: Int = 256) {
    self.threads = threads ?? min(4, max(1, ProcessInfo.processInfo.activeProcessorCount - 1))
    self.maximumWaiting = maximumWaiting
  }

  /// Runs work on one of the threads. Throws `.overloaded` at once if too many logins of the kind are waiting.
  func run<Value: Sendable>(
    for login: Login = .stranger, _ work: @escaping @Sendable () -> Value
  ) async throws(AuthenticationError) -> Value {
    let value: Value? = await withCheckedContinuation { continuation in
      let isAccepted = submit(login) { continuation.resume(returning: work()) }
      if !isAccepted { continuation.resume(returning: nil) }
    }
    guard let value else { throw .overloaded }
    return value
  }

  private func submit(_ login: Login, _ job: @escaping Job) -> Bool {
    let step = state.withLock { state -> Step in
      if state.running < threads {
        state.running += 1
        return .start
      }
      if case .known(let user) = login, state.places[user, default: 0] < Self.maximumWaitingOfOne {
        guard state.known.count < maximumWaiting else { return .refuse }
        state.known.append((user, job))
        state.places[user, default: 0] += 1
      } else {
        guard state.strangers.count < maximumWaiting else { return .refuse }
        state.strangers.append(job)
      }
      return .wait
    }
    guard step == .start else { return step == .wait }
    // A thread lives while there is work: starting one takes microseconds, hashing milliseconds.
    let isStarted = BackgroundThread.start {
      job()
      while let next = self.next() { next() }
    }
    if !isStarted { state.withLock { $0.running -= 1 } }
    return isStarted
  }

  private func next() -> Job? {
    state.withLock { state in
      if let job = state.next() { return job }
      state.running -= 1
      return nil
    }
  }
}
