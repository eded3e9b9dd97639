import DequeModule

/// Who has which slot, and who waits for one. A value that says what is to be done; the pool does it.
struct PoolState {
  /// What becomes of a job.
  enum Admission {
    /// It runs, on this slot.
    case start(Slot)
    /// It waits. The pool is to look for waits that have become too long at this moment, unless it does so already.
    case wait(until: ContinuousClock.Instant?)
    /// Too many wait.
    case refuse
    /// The pool is closed.
    case closed
  }

  private let maximumSlots: Int
  private let maximumWaiting: Int
  private var slots = 0
  private var idle: [Slot] = []
  private var waiting: Deque<Job> = []
  private var isWatching = false
  private(set) var isClosed = false

  init(maximumSlots: Int, maximumWaiting: Int) {
    self.maximumSlots = max(1, maximumSlots)
    self.maximumWaiting = max(0, maximumWaiting)
  }

  /// A job has come.
  mutating func admit(_ job: Job) -> Admission {
    if isClosed { return .closed }
    // The one used last: the others may one day be closed by the server for idleness.
    if let slot = idle.popLast() { return .start(slot) }
    if slots < maximumSlots {
      slots += 1
      return .start(Slot())
    }
    guard waiting.count < maximumWaiting else { return .refuse }
    waiting.append(job)
    defer { isWatching = true }
    return .wait(until: isWatching ? nil : job.deadline)
  }

  /// A slot's job is done: the job that it is to do next; nil for none.
  mutating func release(_ slot: Slot) -> Job? {
    if let job = waiting.popFirst() { return job }
    if !isClosed { idle.append(slot) }
    return nil
  }

  /// Takes back a job that has not begun; nil when it has.
  mutating func withdraw(_ number: UInt64) -> Job? {
    guard let index = waiting.firstIndex(where: { $0.number == number }) else { return nil }
    return waiting.remove(at: index)
  }

  /// The jobs that have waited too long, and when to look again.
  mutating func expire(at now: ContinuousClock.Instant) -> (expired: [Job], next: ContinuousClock.Instant?) {
    var expired: [Job] = []
    // All may wait for the same time, so they expire in the order in which they came.
    while let first = waiting.first, first.deadline <= now { expired.append(waiting.removeFirst()) }
    isWatching = !waiting.isEmpty
    return (expired, waiting.first?.deadline)
  }

  /// Nobody gets a slot any more: what waited, and the slots that nobody has.
  mutating func close() -> (jobs: [Job], slots: [Slot]) {
    isClosed = true
    defer {
      waiting = []
      idle = []
    }
    return (Array(waiting), idle)
  }
}
