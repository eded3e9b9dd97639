/// The circuit to one push service: whether its sender may be given pushes.
///
/// Closed while it works; open while its operator's mistake keeps it from working, or while the service is unavailable;
/// half-open while a single push, or one per interval where the service is silent, tries whether it works again. A pure
/// value.
struct SenderGate: Sendable {
  /// As the metric shows it: 0 closed, 1 half-open, 2 open.
  enum State: Int, Sendable {
    case closed = 0
    case halfOpen = 1
    case open = 2
  }

  /// Why it is not closed.
  enum Cause: Sendable {
    /// The service refuses the credentials or the configuration.
    case configuration
    /// The service does not answer, or says that it cannot work.
    case outage
  }

  private let policy: CircuitPolicy
  private let probeInterval: Int64
  private let outageProbeInterval: Int64
  private var probeDue: Int64 = 0
  /// What it was before the last probe began.
  private var dueBefore: Int64 = 0
  private var hasProbe = false
  /// Pushes in a row that got no answer on their merits, and when the first of them did.
  private var misses = 0
  private var firstMissAt: Int64 = 0
  private(set) var state = State.closed
  /// Uptime since which it is not closed; meaningful while it is not.
  private(set) var openedAt: Int64 = 0
  /// Meaningful while not closed.
  private(set) var cause = Cause.configuration
  /// How often the sender turned out to work again.
  private(set) var recoveries = 0

  /// Tries again after so many milliseconds: what the operator must mend, and what is out of service.
  init(policy: CircuitPolicy = CircuitPolicy(), probeInterval: Int64, outageProbeInterval: Int64) {
    self.policy = policy
    self.probeInterval = probeInterval
    self.outageProbeInterval = outageProbeInterval
  }

  /// Whether the service is unavailable.
  var isOut: Bool { state != .closed && cause == .outage }

  /// How many further pushes may be submitted now: everything, one, or none.
  func allowance(at uptime: Int64) -> Int {
    switch state {
    case .closed: .max
    case .open: uptime >= probeDue ? 1 : 0
    // Of a service that is silent nobody knows whether it will ever answer the push that tries, even if it is back
    // since: then another tries.
    case .halfOpen: !hasProbe || (cause == .outage && uptime >= probeDue) ? 1 : 0
    }
  }

  /// The one push that was allowed is on its way.
  mutating func beginProbe(at uptime: Int64) {
    dueBefore = probeDue
    if cause == .outage { probeDue = uptime + outageProbeInterval }
    state = .halfOpen
    hasProbe = true
  }

  /// The probe was not sent after all, or its answer says nothing about the sender: another may be sent at once.
  mutating func withdrawProbe() {
    guard state == .halfOpen else { return }
    state = .open
    hasProbe = false
    probeDue = dueBefore
  }

  /// The sender cannot work. Returns whether this is news.
  mutating func fail(at uptime: Int64) -> Bool {
    let isNews = state == .closed || cause != .configuration
    if state == .closed { openedAt = uptime }
    switch state {
    case .closed, .halfOpen: probeDue = uptime + probeInterval
    // Also what is refused before it is submitted has used up the probe; late answers from before the gate opened have
    // not.
    case .open: if uptime >= probeDue { probeDue = uptime + probeInterval }
    }
    state = .open
    cause = .configuration
    hasProbe = false
    return isNews
  }

  /// The service did not answer, or said that it cannot work. Returns whether it counts as unavailable from now on.
  mutating func miss(at uptime: Int64) -> Bool {
    guard state == .closed else { return false }
    if misses == 0 { firstMissAt = uptime }
    misses += 1
    guard misses >= policy.misses, uptime - firstMissAt >= policy.after.milliseconds else { return false }
    state = .open
    openedAt = uptime
    cause = .outage
    probeDue = uptime + outageProbeInterval
    hasProbe = false
    return true
  }

  /// The service has been silent for so many milliseconds with so many pushes in flight; less of that is endured where
  /// it is crowding out the others. Returns whether it counts as unavailable from now on.
  mutating func endure(silence: Int64, inFlight: Int, isCrowding: Bool, at uptime: Int64) -> Bool {
    let limit = isCrowding ? min(policy.patience, policy.silence) : policy.silence
    guard state == .closed, silence >= limit.milliseconds, inFlight >= policy.misses else { return false }
    state = .open
    openedAt = uptime
    cause = .outage
    probeDue = uptime + outageProbeInterval
    hasProbe = false
    return true
  }

  /// An attempt ended without an answer that would prove anything: the next probe is due after the interval.
  mutating func remainUnsure(at uptime: Int64) {
    guard state == .halfOpen else { return }
    state = .open
    hasProbe = false
    probeDue = uptime + (cause == .outage ? outageProbeInterval : probeInterval)
  }

  /// The service answered a push on its merits, so the sender works. Returns whether this is news.
  mutating func succeed() -> Bool {
    misses = 0
    guard state == .halfOpen else { return false }
    state = .closed
    hasProbe = false
    recoveries += 1
    return true
  }
}
