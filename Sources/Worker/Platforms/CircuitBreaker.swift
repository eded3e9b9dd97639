/// The circuit breaker of one push service: whether pushes may be handed to it.
///
/// *Closed*: it works. *Open*: the configuration is refused, or the service is unavailable. *Half-open*: a probe tries
/// whether it works again; while the service is silent, one probe per interval. `fail`, `miss` and `endure` open it,
/// `beginProbe` makes it half-open, and `succeed` closes it.
struct CircuitBreaker: Sendable {
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
  /// `probeDue` before the last probe began.
  private var dueBefore: Int64 = 0
  private var hasProbe = false
  /// Pushes in a row that the service did not answer properly, and when the first of them ended.
  private var misses = 0
  private var firstMissAt: Int64 = 0
  private(set) var state = State.closed
  /// Uptime since which it is not closed. Meaningful while it is not.
  private(set) var openedAt: Int64 = 0
  /// Meaningful while not closed.
  private(set) var cause = Cause.configuration
  /// How often the service turned out to work again.
  private(set) var recoveries = 0

  /// The intervals between probes, in milliseconds: after a configuration error, and in an outage.
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
    // A silent service may never answer the probe, even if it has come back since: then another push tries.
    case .halfOpen: !hasProbe || (cause == .outage && uptime >= probeDue) ? 1 : 0
    }
  }

  /// The probe is handed over.
  mutating func beginProbe(at uptime: Int64) {
    dueBefore = probeDue
    if cause == .outage { probeDue = uptime + outageProbeInterval }
    state = .halfOpen
    hasProbe = true
  }

  /// The probe was not sent after all, or its answer says nothing about the service: another may be sent at once.
  mutating func withdrawProbe() {
    guard state == .halfOpen else { return }
    state = .open
    hasProbe = false
    probeDue = dueBefore
  }

  /// The configuration is refused. Returns whether this is news.
  mutating func fail(at uptime: Int64) -> Bool {
    let isNews = state == .closed || cause != .configuration
    if state == .closed { openedAt = uptime }
    switch state {
    case .closed, .halfOpen: probeDue = uptime + probeInterval
    // A push that is refused before it is handed over has used up the probe too; late answers from before the circuit
    // opened have not.
    case .open: if uptime >= probeDue { probeDue = uptime + probeInterval }
    }
    state = .open
    cause = .configuration
    hasProbe = false
    return isNews
  }

  /// The service did not answer, or said that it cannot work. Returns whether the circuit opens.
  mutating func miss(at uptime: Int64) -> Bool {
    guard state == .closed else { return false }
    if misses == 0 { firstMissAt = uptime }
    misses += 1
    guard misses >= policy.misses, uptime - firstMissAt >= policy.after.milliseconds else { return false }
    openForOutage(at: uptime)
    return true
  }

  /// The service has been silent for so many milliseconds with so many pushes in flight. `isCrowding`: its pushes take
  /// the room of others, so less silence is endured. Returns whether the circuit opens.
  mutating func endure(silence: Int64, inFlight: Int, isCrowding: Bool, at uptime: Int64) -> Bool {
    let limit = isCrowding ? min(policy.patience, policy.silence) : policy.silence
    guard state == .closed, silence >= limit.milliseconds, inFlight >= policy.misses else { return false }
    openForOutage(at: uptime)
    return true
  }

  /// The probe's answer proves nothing: the next probe is due after the interval.
  mutating func remainUnsure(at uptime: Int64) {
    guard state == .halfOpen else { return }
    state = .open
    hasProbe = false
    probeDue = uptime + (cause == .outage ? outageProbeInterval : probeInterval)
  }

  /// The service answered a push properly. Returns whether the circuit closes.
  mutating func succeed() -> Bool {
    misses = 0
    guard state == .halfOpen else { return false }
    state = .closed
    hasProbe = false
    recoveries += 1
    return true
  }

  private mutating func openForOutage(at uptime: Int64) {
    state = .open
    openedAt = uptime
    cause = .outage
    probeDue = uptime + outageProbeInterval
    hasProbe = false
  }
}

/// When a push service counts as unavailable, so that only a probe now and then is handed to it.
package struct CircuitPolicy: Hashable, Sendable {
  /// Pushes in a row without a proper answer, ...
  package var misses = 20
  /// ... the first of them at least so long ago: connections that break all at once are no outage.
  package var after = Duration.seconds(3)
  /// After this long without any answer while pushes are in flight, later sends of a user stop waiting for their
  /// answers.
  package var patience = Duration.seconds(2)
  /// After this long without any answer, and with at least `misses` pushes in flight, the service counts as
  /// unavailable.
  package var silence = Duration.seconds(5)

  package init() {}
}
