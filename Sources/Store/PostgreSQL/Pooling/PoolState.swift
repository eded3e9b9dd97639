import DequeModule

/// The slots and the queue of jobs of a pool: a value whose methods return the actions that the pool performs.
struct PoolState {
  /// The action for a new job.
  enum Admission {
    /// Run it on this slot.
    case start(Slot)
    /// Leave it in the queue. With a moment given, call `expire` then; nil when that call is already scheduled.
    case wait(until: ContinuousClock.Instant?)
    /// Refuse it: the queue is full.
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

  /// Gives a new job a slot or a place in the queue.
  mutating func admit(_ job: Job) -> Admission {
    if isClosed { return .closed }
    // Last in, first out: connections that are not needed stay idle, and the server may close them.
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

  /// Takes a slot back after its job. Returns the job to run on it next; nil leaves the slot idle.
  mutating func release(_ slot: Slot) -> Job? {
    if let job = waiting.popFirst() { return job }
    if !isClosed { idle.append(slot) }
    return nil
  }

  /// Removes a queued job, whose caller was cancelled; nil when it has already begun.
  mutating func withdraw(_ number: UInt64) -> Job? {
    guard let index = waiting.firstIndex(where: { $0.number == number }) else { return nil }
    return waiting.remove(at: index)
  }

  /// Removes the jobs whose deadline has passed. Returns them and the moment of the next call; nil for none.
  mutating func expire(at now: ContinuousClock.Instant) -> (expired: [Job], next: ContinuousClock.Instant?) {
    var expired: [Job] = []
    // All jobs have the same wait limit, so they expire in the order of the queue.
    while let first = waiting.first, first.deadline <= now { expired.append(waiting.removeFirst()) }
    isWatching = !waiting.isEmpty
    return (expired, waiting.first?.deadline)
  }

  /// Closes the pool to new jobs. Returns the queued jobs, to be refused, and the idle slots, to be closed.
  mutating func close() -> (jobs: [Job], slots: [Slot]) {
    isClosed = true
    defer {
      waiting = []
      idle = []
    }
    return (Array(waiting), idle)
  }
}

/// A unit of work that needs a connection. Exactly one of the two closures is called, once.
struct Job: Sendable {
  /// Identifies the job for `withdraw`.
  let number: UInt64
  /// The end of its wait for a connection.
  let deadline: ContinuousClock.Instant
  /// Runs the job, on the slot's thread.
  let perform: @Sendable (Slot) -> Void
  /// Fails the job with an error.
  let refuse: @Sendable (any Error) -> Void
}
