import FanfareCore
import TwoLaneQueue

/// One push service of one hub: its queue of pushes, and the limits on handing them over.
///
/// A push is *queued* → *handed over* (it holds a place) → *answered*. If its owner must be looked up again, it is
/// *checked* in between and holds a place meanwhile. Pushes *rest* until a time of their own, or until an older push to
/// the same device has ended, and are queued again. The circuit breaker decides whether pushes may be handed over; the
/// probe is the push that tries whether a stopped service works again.
///
/// Invariants: the places in flight are those of the devices that are in flight or checked, including devices of items
/// given up since; a probe is set only while the breaker has one; no count is negative.
struct PlatformLane: Sendable {
  /// Places among the pushes in flight.
  struct Places: Hashable, Sendable {
    /// Pushes handed over and not answered, and places reserved for those being checked.
    fileprivate(set) var inFlight = 0
    /// The broadcasts' pushes among them.
    fileprivate(set) var broadcasts = 0
    /// The pushes being checked among them, which the service does not have.
    fileprivate(set) var checking = 0

    /// Pushes that the service has and has not answered.
    var unanswered: Int { inFlight - checking }
  }

  struct Silence: Sendable {
    /// Uptime since which the service has answered none of its pushes; nil: it has none.
    fileprivate(set) var since: Int64?
    /// Whether it has lasted so long that no other push waits for the service's answers.
    fileprivate(set) var isNoticed = false
  }

  /// A change of the lane's circuit breaker.
  enum Change: Sendable {
    /// The service works again.
    case recovered
    /// The service does not answer, or reports that it cannot work.
    case unavailable
    /// The service refuses the configuration.
    case stopped
  }

  /// Pushes that wait for a place, oldest first.
  /// Tickets of items that were given up are skipped at their turn.
  private var queue = TwoLaneQueue<Ticket>()
  private(set) var places = Places()
  /// How many pushes of broadcasts may be in flight.
  private(set) var window: BroadcastWindow
  private(set) var silence = Silence()
  private(set) var breaker: CircuitBreaker
  /// Why the circuit opened last, in the service's own word; empty if it gave none.
  var reason = ""
  /// Whether refusals concern the credential or single devices.
  private(set) var trust: CredentialTrust
  /// The push that tries whether the stopped service works again.
  private(set) var probe: Ticket?
  /// The order of the pushes that an outage delays.
  private(set) var order: DeferredOrder
  /// This worker's share of the platform's quota.
  private(set) var quota: PlatformQuota
  private(set) var unregistering: UnregisterGuard
  /// Pushes that may be sent at a later time.
  private(set) var resting = DeadlineQueue<Ticket>()

  init(_ configuration: WorkerConfiguration, quota: PushQuota?) {
    window = BroadcastWindow(most: configuration.broadcasts.maximumBroadcastPushesPerSender)
    breaker = CircuitBreaker(
      policy: configuration.circuit, probeInterval: configuration.times.probeInterval.milliseconds,
      outageProbeInterval: configuration.times.outageProbeInterval.milliseconds)
    trust = CredentialTrust(limit: max(1, configuration.circuit.refusals))
    order = DeferredOrder(capacity: configuration.limits.maximumOrdered)
    self.quota = PlatformQuota(quota)
    unregistering = UnregisterGuard(policy: configuration.unregisterPolicy)
  }

  var isStopped: Bool { breaker.state != .closed }
  /// Whether queued pushes wait until the service works again, or answers at all: their first
  /// attempt counts as made.
  var isUnresponsive: Bool { isStopped || silence.isNoticed }
  /// Pushes of single sends that the service has and has not answered.
  var unansweredSingles: Int { places.unanswered - places.broadcasts }

  /// Whether any push may be handed to the service now.
  func mayPush(at now: Moment) -> Bool { breaker.allowance(at: now.uptime) > 0 }

  /// Whether queued pushes wait for an unknown time: for the service to recover, or for quota.
  func isHeldUp(at now: Moment) -> Bool { isStopped || quota.isDry(at: now.wall) }

  // The queue.

  /// While both lanes of the queue wait, one push in this number is a broadcast's.
  static var broadcastPeriod: Int { BulkLane.period }
  var queuedCount: Int { queue.count }
  var queuedSingles: Int { queue.singleCount }
  var hasQueuedBroadcast: Bool { queue.hasBulk }
  /// All queued pushes, each lane in its order.
  var queued: [Ticket] { queue.elements }

  mutating func enqueue(_ ticket: Ticket) { queue.append(ticket, isBulk: ticket.isBroadcast) }
  mutating func enqueueFirst(_ ticket: Ticket) { queue.prepend(ticket, isBulk: ticket.isBroadcast) }
  /// Takes out all queued pushes, each lane of the queue in its order.
  mutating func takeQueue() -> [Ticket] { queue.removeAll() }

  /// Takes out the next push that may be handed over; `most`: the limit of pushes in flight.
  mutating func next(most: Int, lastSingle: Int64, at now: Moment) -> Ticket? {
    guard places.inFlight < most, mayPush(at: now), quota.allowsPush(besides: places.checking, at: now.wall) else {
      return nil
    }
    return queue.popFirst(
      mayTakeBulk: queue.hasBulk && places.broadcasts < window.limit(singleAt: lastSingle, at: now.uptime))
  }

  mutating func rest(_ ticket: Ticket, until due: Int64) { resting.insert(ticket, due: due) }
  mutating func popRested(at uptime: Int64) -> Ticket? { resting.popDue(at: uptime) }

  // Pushes.

  /// Begins a push's attempt; while the service is stopped, the push is the probe.
  mutating func beginAttempt(_ ticket: Ticket, at uptime: Int64) {
    guard isStopped else { return }
    breaker.beginProbe(at: uptime)
    probe = ticket
  }

  /// Withdraws a probe that will not be answered: it expired or could not be sent.
  /// Another push may be the probe.
  mutating func withdrawProbe() {
    probe = nil
    breaker.withdrawProbe()
  }

  /// Ignores the probe's answer, which says nothing about the service.
  mutating func ignoreProbe() { breaker.withdrawProbe() }

  /// Reserves a place for a push whose device is looked up again.
  mutating func beginCheck(_ ticket: Ticket) {
    occupy(ticket)
    places.checking += 1
  }

  /// Frees the place after the look-up, or after the push was given up meanwhile.
  mutating func endCheck(_ ticket: Ticket) {
    release(ticket)
    places.checking -= 1
  }

  /// Notes that the push is handed over.
  mutating func submitted(_ ticket: Ticket, at uptime: Int64) {
    occupy(ticket)
    if ticket.isBroadcast { window.submitted(ticket, inFlight: places.broadcasts, at: uptime) }
    if silence.since == nil { silence.since = uptime }
  }

  /// Notes that the push has its answer, or will get none.
  mutating func answered(_ ticket: Ticket, _ outcome: PushOutcome, at uptime: Int64) {
    if ticket.isBroadcast {
      window.ended(
        ticket, isAnswer: outcome.verdict == .accepted, isMostlyBroadcast: places.broadcasts > places.inFlight / 2,
        at: uptime)
    }
    release(ticket)
    // The silence also ends with the last push, however that ends.
    if outcome.verdict != .unknown || places.unanswered == 0 {
      silence = Silence(since: places.unanswered > 0 ? uptime : nil)
    }
  }

  /// Passes an answer to the circuit breaker, even if the send was given up.
  /// A refusal of the configuration stops the service only when the push is judged: see `refuse`.
  mutating func learn(from outcome: PushOutcome, about ticket: Ticket, at uptime: Int64) -> Change? {
    switch outcome.verdict {
    case .accepted, .rejected, .malformed, .deviceGone:
      guard outcome.provesCredential else {
        if probe == ticket { breaker.withdrawProbe() }
        return nil
      }
      // A late answer from before the circuit opened proves nothing about the credential as it is now.
      if breaker.state != .open { trust.prove(at: uptime) }
      return breaker.succeed() ? .recovered : nil
    case .retryHere, .retryLater, .unknown:
      // A late answer from before the circuit opened says nothing about the probe.
      if probe == ticket { breaker.remainUnsure(at: uptime) }
      return outcome.isOutage && breaker.miss(at: uptime) ? .unavailable : nil
    case .reauthenticate:
      if probe == ticket { breaker.remainUnsure(at: uptime) }
      return nil
    // The refusal of a push that was given up is not attributed to a device; those that follow are.
    case .configurationError: return nil
    }
  }

  /// Notes that the credential or the configuration was refused for a device.
  /// Returns whether the refusal concerns this device alone.
  mutating func refuse(_ device: RegistrationID, at uptime: Int64) -> Bool {
    // While the service is stopped, the probes decide.
    breaker.state == .closed && trust.refuse(device, at: uptime)
  }

  mutating func isRefusalReportDue(at uptime: Int64) -> Bool { trust.isReportDue(at: uptime) }

  /// Stops the service because it refuses the configuration.
  mutating func stop(at uptime: Int64) -> Change? {
    trust.distrust()
    return breaker.fail(at: uptime) ? .stopped : nil
  }

  /// Looks whether the service has been silent for long.
  /// `crowd`: more single sends for it take the room of others.
  mutating func watchSilence(patience: Duration, crowd: Int, at uptime: Int64) -> (isNoticed: Bool, change: Change?) {
    guard let since = silence.since, places.unanswered > 0 else { return (false, nil) }
    let duration = uptime - since
    guard duration >= patience.milliseconds else { return (false, nil) }
    let isNew = !silence.isNoticed
    silence.isNoticed = true
    let isCrowding = unansweredSingles + queue.singleCount > crowd
    let isUnavailable = breaker.endure(
      silence: duration, inFlight: places.unanswered, isCrowding: isCrowding, at: uptime)
    return (isNew, isUnavailable ? .unavailable : nil)
  }

  // The quota.

  mutating func spendQuota() { quota.spend() }
  mutating func allowsPush(at now: Moment) -> Bool { quota.allowsPush(at: now.wall) }

  /// The reservation to ask for now; nil: none.
  mutating func requestQuota(at now: Moment) -> (quota: PushQuota, pushes: Int, lead: Duration)? {
    let checks = places.checking
    // Pushes being checked are sent soon after the answer, or are checked again. A stopped lane needs no more.
    let needed = checks + (!queue.isEmpty && mayPush(at: now) ? 1 : 0)
    let isWaiting = needed > 0 && !quota.allowsPush(besides: needed - 1, at: now.wall)
    return quota.request(isWaiting: isWaiting, checks: checks, at: now.wall)
  }

  mutating func grantQuota(_ pushes: Int, from moment: UnixTime, at now: Moment) {
    quota.grant(pushes, from: moment, at: now.wall)
  }

  // Dead devices.

  /// Notes whether an answer called its device dead.
  /// Returns whether this suspended or resumed unregistering.
  mutating func judgeDevice(isGone: Bool) -> Bool { unregistering.record(isGone: isGone) }
  mutating func suspect(_ device: DeadDevice) { unregistering.hold(device) }
  mutating func takeSuspects() -> [DeadDevice] { unregistering.takeSuspects() }

  // The order of deferred pushes.

  /// Remembers that the push is not sent before `due`. Returns whether it is remembered.
  @discardableResult
  mutating func remember(_ push: DeferredOrder.Push, due: Int64, waiting: Ticket? = nil) -> Bool {
    order.remember(push.id, acceptedAt: push.acceptedAt, to: push.device, due: due, waiting: waiting)
  }

  /// Changes the due time of a remembered push.
  mutating func delay(_ push: DeferredOrder.Push, due: Int64) {
    order.delay(push.id, acceptedAt: push.acceptedAt, to: push.device, due: due)
  }

  /// Forgets a push that ended or waits for its own reason.
  /// Returns the waiting push whose turn it is now.
  mutating func forget(_ push: DeferredOrder.Push, at uptime: Int64) -> Ticket? {
    order.forget(push.id, acceptedAt: push.acceptedAt, to: push.device, at: uptime)
  }

  mutating func forgetOverdue(at uptime: Int64) -> [Ticket] { order.forgetOverdue(at: uptime) }
  mutating func takeWaiting() -> [Ticket] { order.takeWaiting() }

  /// The nearest older push to the device; nil: none is before this one.
  func before(_ push: DeferredOrder.Push, at uptime: Int64) -> DeferredOrder.Before? {
    order.before(push.id, acceptedAt: push.acceptedAt, to: push.device, at: uptime)
  }

  private mutating func occupy(_ ticket: Ticket) {
    places.inFlight += 1
    if ticket.isBroadcast { places.broadcasts += 1 }
  }

  private mutating func release(_ ticket: Ticket) {
    places.inFlight -= 1
    if ticket.isBroadcast { places.broadcasts -= 1 }
  }

  func checkInvariants() -> [String] {
    var violations = trust.checkInvariants()
    if places.checking < 0 || places.broadcasts < 0 || places.inFlight < max(places.checking, places.broadcasts) {
      violations.append("places are counted wrongly: \(places)")
    }
    if (silence.since == nil) != (places.unanswered == 0) {
      violations.append("\(places.unanswered) pushes unanswered, silent since \(String(describing: silence.since))")
    }
    return violations
  }
}
