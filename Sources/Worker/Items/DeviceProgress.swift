import FanfareCore

/// The progress of a send on one of its devices. See `WorkerStep` for the phases' transitions.
struct DeviceProgress: Sendable {
  typealias Phase = DevicePhase

  /// `checkedAt` of a device that was not looked up yet: it has no handle. Also other uptimes that are unknown.
  static let never = Int64.min

  /// The device as the last look-up found it.
  private(set) var target: Target
  /// The number of its platform lane; -1 where the hub has no sender for the platform.
  let sender: Int
  /// Whether the registry knows the device. A handle given by the caller need not be registered.
  let isRegistered: Bool
  private(set) var phase = Phase.queued
  /// The attempts so far.
  private(set) var history = RetryPolicy.History()
  /// Whether the first attempt has its outcome, or cannot be made because the sender is stopped.
  private(set) var isFirstAttemptOver = false
  /// Uptime of the first attempt, or of the first one after it was held: the age of later attempts
  /// counts from it. `never` if it is unknown.
  private(set) var firstAttemptAt = Self.never
  /// Uptime of the service's last answer; `never` before it.
  private(set) var answeredAt = Self.never
  /// Uptime of the request that last looked the device up: from then on the answer may be out of
  /// date.
  private(set) var checkedAt: Int64
  /// The result. Meaningful when done.
  private(set) var outcome = DeviceResult.Outcome.failed
  /// The last answer of the service.
  private(set) var answer = Answer()
  /// Uptime before which it must not be pushed to.
  /// Meaningful when resting or deferred. Uptime, because the wall clock may be set while other devices of the item are
  /// still open.
  private(set) var due: Int64 = 0

  /// The reason and the HTTP status that a push service gave.
  struct Answer: Sendable {
    var reason = ""
    var status = 0
  }

  init(target: Target, sender: Int, isRegistered: Bool, checkedAt: Int64) {
    self.target = target
    self.sender = sender
    self.isRegistered = isRegistered
    self.checkedAt = checkedAt
  }

  /// The device in no queue: to be queued, unless it has its result.
  var recalled: DeviceProgress {
    var device = self
    if device.phase != .done { device.enqueue() }
    return device
  }

  /// Whether it still needs a result.
  var isOpen: Bool {
    switch phase {
    case .queued, .checking, .inFlight, .resting: true
    case .done, .deferred, .withdrawn: false
    }
  }

  var reason: String { answer.reason }
  var status: Int { answer.status }

  /// The result in the form of the status record.
  var result: DeviceResult {
    DeviceResult(
      registration: target.registration, platform: target.platform, outcome: outcome,
      reason: outcome == .delivered ? "" : reason, status: status, attempts: history.attempts)
  }

  /// The result with the device's times.
  func timedResult(at now: Moment) -> DeviceResult {
    var result = result
    result.pushedAt = firstAttempt(at: now)
    if answeredAt != Self.never { result.answeredAt = now.wall(at: answeredAt) }
    return result
  }

  /// When the first attempt that was not held was made; nil if there was none, or its time is unknown.
  func firstAttempt(at now: Moment) -> UnixTime? {
    guard history.attempts > history.heldAttempts, firstAttemptAt != Self.never else { return nil }
    return now.wall(at: firstAttemptAt)
  }

  // Transitions.

  mutating func enqueue() { phase = .queued }
  mutating func beginRecheck() { phase = .checking }
  mutating func rest(until due: Int64) { (phase, self.due) = (.resting, due) }
  mutating func withdraw() { phase = .withdrawn }
  /// Ends the device because its item is given up.
  mutating func giveUp() { phase = .done }

  /// Takes over the device found by a look-up.
  mutating func found(_ target: Target, checkedAt: Int64) {
    self.target = target
    self.checkedAt = checkedAt
    phase = .queued
  }

  /// Lets its next push look the device up again.
  mutating func forgetLookUp() { checkedAt = Self.never }

  /// Notes that it is handed to its sender.
  mutating func submit(at uptime: Int64) {
    if history.attempts == history.heldAttempts { firstAttemptAt = uptime }
    history.attempts += 1
    phase = .inFlight
  }

  /// Notes that its service has answered.
  mutating func answered(at uptime: Int64) { answeredAt = uptime }

  /// Remembers the attempts made, after an answer.
  mutating func tried(_ history: RetryPolicy.History) { self.history = history }

  /// Remembers the service's answer to an attempt that will be repeated.
  mutating func refused(reason: String, status: Int) { answer = Answer(reason: reason, status: status) }

  /// Defers the device until that uptime: it leaves the worker's memory.
  mutating func postpone(until due: Int64) {
    phase = .deferred
    self.due = due
  }

  mutating func finish(as outcome: DeviceResult.Outcome, reason: String, status: Int) {
    phase = .done
    self.outcome = outcome
    answer = Answer(reason: reason, status: status)
  }

  /// Ends the first attempt. Returns false if it was over before.
  mutating func passFirstAttempt() -> Bool {
    defer { isFirstAttemptOver = true }
    return !isFirstAttemptOver
  }

  /// Restores the times of a result that a retry record reports.
  mutating func restore(firstAttemptAt: Int64?, answeredAt: Int64?) {
    if let firstAttemptAt { self.firstAttemptAt = firstAttemptAt }
    if let answeredAt { self.answeredAt = answeredAt }
  }

  /// Restores the attempts that a retry record reports.
  mutating func restore(firstAttemptAt: Int64?, due: Int64, _ phase: Phase) {
    if let firstAttemptAt { self.firstAttemptAt = firstAttemptAt }
    (self.due, self.phase) = (due, phase)
  }
}
