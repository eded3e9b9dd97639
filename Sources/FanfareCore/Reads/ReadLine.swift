/// The reads of a store that run and that wait: a value whose methods return what the `ReadGate` does.
///
/// A read runs, or waits in the queue for a slot, or is held because its caller has its share of reads in the queue and
/// running. Invariants: while a slot is free the queue is empty; while a caller is below its share none of its reads is
/// held.
struct ReadLine {
  /// A read that waits. `resume` is called exactly once.
  struct Waiter: Sendable {
    let number: UInt64
    let caller: ReadCaller?
    /// The end of its patience.
    let deadline: ContinuousClock.Instant
    let resume: @Sendable (Result<Void, any Error>) -> Void
  }

  /// The answer to a read that wants to wait.
  enum Joining: Hashable {
    case started
    /// With a moment given, call `expire` then; nil when that call is already due.
    case waits(ContinuousClock.Instant?)
    /// `isOfCaller`: because too many of the caller's own wait.
    case refused(isOfCaller: Bool)
  }

  /// The reads of one caller.
  private struct Own {
    /// Reads that run or are in the queue.
    var admitted = 0
    var held: [UInt64] = []
    /// Reads in the queue and held ones.
    var waiting = 0
  }

  private let slots: Int
  private let ofCaller: Int
  private let mostWaiting: Int
  private var running = 0
  private var queue: [UInt64] = []
  private var waiters: [UInt64: Waiter] = [:]
  private var callers: [ReadCaller: Own] = [:]
  private var lastNumber: UInt64 = 0
  private var isWatched = false

  init(slots: Int, ofCaller: Int, waiting: Int) {
    self.slots = max(1, slots)
    // One of several slots stays free for others.
    self.ofCaller = max(1, min(ofCaller, slots - 1))
    mostWaiting = max(0, waiting)
  }

  var waitingCount: Int { waiters.count }

  /// A number for `Waiter`.
  mutating func nextNumber() -> UInt64 {
    lastNumber &+= 1
    return lastNumber
  }

  /// Begins a read if it need not wait.
  mutating func start(_ caller: ReadCaller?) -> Bool {
    guard running < slots, hasShare(caller) else { return false }
    running += 1
    if let caller { callers[caller, default: Own()].admitted += 1 }
    return true
  }

  /// Begins a read, or lets it wait.
  mutating func join(_ waiter: Waiter) -> Joining {
    if start(waiter.caller) { return .started }
    let free = mostWaiting - waiters.count
    guard free > 0 else { return .refused(isOfCaller: false) }
    if let caller = waiter.caller {
      // The dynamic threshold of shared-memory switches (Choudhury and Hahne 1998): a caller's reads may take as many
      // places as remain free, so one alone gets half of them.
      guard callers[caller]?.waiting ?? 0 < free else { return .refused(isOfCaller: true) }
      callers[caller, default: Own()].waiting += 1
    }
    waiters[waiter.number] = waiter
    if let caller = waiter.caller, !hasShare(caller) {
      callers[caller]?.held.append(waiter.number)
    } else {
      enqueue(waiter)
    }
    defer { isWatched = true }
    return .waits(isWatched ? nil : waiter.deadline)
  }

  /// Ends a read. Returns the one that begins in its place.
  mutating func leave(_ caller: ReadCaller?) -> Waiter? {
    running -= 1
    if let caller { release(caller) }
    guard !queue.isEmpty, let next = waiters.removeValue(forKey: queue.removeFirst()) else { return nil }
    running += 1
    if let caller = next.caller { callers[caller]?.waiting -= 1 }
    return next
  }

  /// Takes a read out of the line; nil if it does not wait any more.
  mutating func withdraw(_ number: UInt64) -> Waiter? {
    guard let waiter = waiters.removeValue(forKey: number) else { return nil }
    let place = queue.firstIndex(of: number)
    if let place { queue.remove(at: place) }
    guard let caller = waiter.caller else { return waiter }
    callers[caller]?.waiting -= 1
    if place == nil { callers[caller]?.held.removeAll { $0 == number } } else { release(caller) }
    return waiter
  }

  /// Takes the reads whose patience has ended out of the line. Returns them, and the moment of the next call; nil for
  /// none.
  mutating func expire(at now: ContinuousClock.Instant) -> (expired: [Waiter], next: ContinuousClock.Instant?) {
    let expired = waiters.values.filter { $0.deadline <= now }.sorted { $0.number < $1.number }
    for waiter in expired { _ = withdraw(waiter.number) }
    isWatched = !waiters.isEmpty
    return (expired, waiters.values.map(\.deadline).min())
  }

  private func hasShare(_ caller: ReadCaller?) -> Bool {
    guard let caller else { return true }
    return callers[caller]?.admitted ?? 0 < ofCaller
  }

  private mutating func enqueue(_ waiter: Waiter) {
    queue.append(waiter.number)
    if let caller = waiter.caller { callers[caller]?.admitted += 1 }
  }

  /// Gives back a part of a caller's share: to the first of its reads that are held.
  private mutating func release(_ caller: ReadCaller) {
    guard var own = callers[caller] else { return }
    if own.held.isEmpty {
      own.admitted -= 1
    } else {
      queue.append(own.held.removeFirst())
    }
    callers[caller] = own.admitted == 0 && own.waiting == 0 ? nil : own
  }
}

extension ReadLine {
  /// Returns the invariants that do not hold; for tests.
  func checkInvariants() -> [String] {
    var problems: [String] = []
    func check(_ holds: Bool, _ problem: String) { if !holds { problems.append(problem) } }
    check(running <= slots, "more reads run than there are slots")
    check(running == slots || queue.isEmpty, "a read waits in the queue for a slot that is free")
    check(queue.allSatisfy { waiters[$0] != nil }, "a read in the queue does not wait")
    let held = callers.values.reduce(0) { $0 + $1.held.count }
    check(waiters.count == queue.count + held, "a read waits that is neither in the queue nor held")
    for (caller, own) in callers {
      let queued = queue.count { waiters[$0]?.caller == caller }
      check(own.admitted <= ofCaller, "a caller has more than its share")
      check(own.held.isEmpty || own.admitted == ofCaller, "a read is held while its caller is below its share")
      check(own.waiting == queued + own.held.count && own.admitted >= queued, "a caller's reads are miscounted")
    }
    return problems
  }
}
