import FanfareCore

/// The circuit breaker of one push service: whether pushes may be handed to it.
///
/// *Closed*: the service works. *Open*: the configuration is refused, or the service is unavailable. *Half-open*: a
/// probe tries whether the service works again; while it is silent, one probe per interval. `fail`, `miss` and `endure`
/// open the breaker, `beginProbe` makes it half-open, and `succeed` closes it.
struct CircuitBreaker: Sendable {
  /// The values of the metric: 0 closed, 1 half-open, 2 open.
  enum State: Int, Sendable {
    case closed = 0
    case halfOpen = 1
    case open = 2
  }

  /// Why it is not closed.
  enum Cause: Sendable {
    /// The service refuses the credentials or the configuration.
    case configuration
    /// The service does not answer, or reports that it cannot work.
    case outage
  }

  private let policy: CircuitPolicy
  private let probeInterval: Int64
  private let outageProbeInterval: Int64
  private var probeDue: Int64 = 0
  /// `probeDue` before the last probe began.
  private var dueBefore: Int64 = 0
  private var hasProbe = false
  /// Pushes in a row without a proper answer, and when the first of them ended.
  private var misses = 0
  private var firstMissAt: Int64 = 0
  private(set) var state = State.closed
  /// Uptime at which it left the closed state. Meaningful while not closed.
  private(set) var openedAt: Int64 = 0
  /// Meaningful while not closed.
  private(set) var cause = Cause.configuration

  /// The intervals between probes, in milliseconds: after a configuration error, and in an outage.
  init(policy: CircuitPolicy = CircuitPolicy(), probeInterval: Int64, outageProbeInterval: Int64) {
    self.policy = policy
    self.probeInterval = probeInterval
    self.outageProbeInterval = outageProbeInterval
  }

  /// Whether the service is unavailable.
  var isOut: Bool { state != .closed && cause == .outage }

  /// How many further pushes may be submitted now: any number, one, or none.
  func allowance(at uptime: Int64) -> Int {
    switch state {
    case .closed: .max
    case .open: uptime >= probeDue ? 1 : 0
    // A silent service may never answer the probe, even if it has recovered since: then another push tries.
    case .halfOpen: !hasProbe || (cause == .outage && uptime >= probeDue) ? 1 : 0
    }
  }

  /// Notes that the probe is handed over.
  mutating func beginProbe(at uptime: Int64) {
    dueBefore = probeDue
    if cause == .outage { probeDue = uptime + outageProbeInterval }
    state = .halfOpen
    hasProbe = true
  }

  /// Withdraws a probe that was not sent or whose answer says nothing about the service; another
  /// may follow at once.
  mutating func withdrawProbe() {
    guard state == .halfOpen else { return }
    state = .open
    hasProbe = false
    probeDue = dueBefore
  }

  /// Notes that the configuration is refused. Returns whether this is news.
  mutating func fail(at uptime: Int64) -> Bool {
    let isNews = state == .closed || cause != .configuration
    if state == .closed { openedAt = uptime }
    switch state {
    case .closed, .halfOpen: probeDue = uptime + probeInterval
    // A push that is refused before it is handed over uses up the probe too; late answers from before the circuit
    // opened do not.
    case .open: if uptime >= probeDue { probeDue = uptime + probeInterval }
    }
    state = .open
    cause = .configuration
    hasProbe = false
    return isNews
  }

  /// Notes a push without an answer, or a reported outage. Returns whether the circuit opens.
  mutating func miss(at uptime: Int64) -> Bool {
    guard state == .closed else { return false }
    if misses == 0 { firstMissAt = uptime }
    misses += 1
    guard misses >= policy.misses, uptime - firstMissAt >= policy.after.milliseconds else { return false }
    openForOutage(at: uptime)
    return true
  }

  /// Notes `silence` milliseconds without an answer to `inFlight` pushes.
  /// `isCrowding`: its pushes take the room of others, so the limit is shorter. Returns whether the circuit opens.
  mutating func endure(silence: Int64, inFlight: Int, isCrowding: Bool, at uptime: Int64) -> Bool {
    let limit = isCrowding ? min(policy.patience, policy.silence) : policy.silence
    guard state == .closed, silence >= limit.milliseconds, inFlight >= policy.misses else { return false }
    openForOutage(at: uptime)
    return true
  }

  /// Notes a probe's answer that proves nothing: the next probe is due after the interval.
  mutating func remainUnsure(at uptime: Int64) {
    guard state == .halfOpen else { return }
    state = .open
    hasProbe = false
    probeDue = uptime + (cause == .outage ? outageProbeInterval : probeInterval)
  }

  /// Notes a proper answer. Returns whether the circuit closes.
  mutating func succeed() -> Bool {
    misses = 0
    guard state == .halfOpen else { return false }
    state = .closed
    hasProbe = false
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

/// When a push service counts as unavailable, so that it gets only an occasional probe.
package struct CircuitPolicy: Hashable, Sendable {
  /// The number of pushes in a row without a proper answer ...
  package var misses = 20
  /// ... and the least time since the first of them: connections that break all at once are no
  /// outage.
  package var after = Duration.seconds(3)
  /// After this long without any answer while pushes are in flight, later sends of a user stop
  /// waiting for their answers.
  package var patience = Duration.seconds(2)
  /// After this long without any answer, and with at least `misses` pushes in flight, the service
  /// counts as unavailable.
  package var silence = Duration.seconds(5)

  /// How many devices in a row must be refused before that concerns the credential although it has just worked.
  package var refusals = 200

  package init() {}
}
