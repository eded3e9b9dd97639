import FanfareCore
import RDKafka

/// The worker's decisions: takes events and returns the actions that the `Engine` performs.
/// It is composed of small state machines, each of which owns only its own state. The flows between them, and so the
/// order of a turn, are here.
///
/// A record becomes an item. The item waits until the earlier sends of its key are through their first attempts. Its
/// devices are looked up; each is queued for its platform and pushed, and its outcome is judged. When every device has
/// its result, the status record is written; when Kafka has acknowledged that, the record's offset settles.
///
/// `WorkerStep` lists the phases of items and devices, and the events that lead from one to the next.
///
/// Invariants, checked by `checkInvariants` in the tests:
/// - those of the components; each item that is vacant is known to no component;
/// - the places of a lane are those of its devices in flight and checked, plus those of items given up since;
/// - an offset settles only after its item's records are acknowledged, and in its epoch;
/// - credit and held records stay within the limits, but for what `HeldMemory.exempt` allows and for one record;
/// - at most one item of a key is in its first attempts.
///
/// One task owns it. It begins each turn with `beginTurn`, calls the methods named after events with all gathered
/// events, and ends it with `finishTurn`.
struct Dispatcher: Sendable {
  /// The moment of a turn, which all its steps share, and the actions that it has led to so far.
  struct Turn: Sendable {
    var now: Moment
    var effects: Effects
  }

  let configuration: WorkerConfiguration
  private(set) var table: SenderTable
  let topics: Topics
  var items: ItemTable
  var partitions: PartitionTracker
  var lookUps = LookUpQueue()
  var lanes: PlatformLanes
  var deferral: DeferralPolicy
  var broadcasts = BroadcastWalker()
  var refusals = RefusedProductions()
  var unserved = UnservedPlatforms()
  var unknownHubs = UnknownHubs()
  var traces: ActiveTraces
  var generator: SplitMix64
  let observe: StepObserver?
  /// The turn that is being taken; between two turns, the last one without its actions.
  var turn = Turn(now: Moment(wall: UnixTime(milliseconds: 0), uptime: 0), effects: Effects(senders: 0))

  /// `seed` decides the jitter of delays and the ids of spans. `isTracing`: sampled sends have spans. `observe` is told
  /// every step.
  init(
    configuration: WorkerConfiguration, table: SenderTable, topics: Topics, seed: UInt64, isTracing: Bool = false,
    observe: StepObserver? = nil
  ) {
    self.configuration = configuration
    self.table = table
    self.topics = topics
    items = ItemTable(rememberedSends: configuration.limits.rememberedSends, observe: observe)
    partitions = PartitionTracker(
      commits: CommitSchedule(
        interval: configuration.times.commitInterval.milliseconds, records: configuration.limits.commitRecords,
        metadataBytes: configuration.limits.commitMetadataBytes))
    lanes = PlatformLanes(table, configuration)
    deferral = DeferralPolicy(topics: topics, longestRest: configuration.times.longestRest)
    traces = ActiveTraces(isEnabled: isTracing)
    generator = SplitMix64(seed: seed)
    self.observe = observe
  }

  /// The moment of the turn.
  var now: Moment { turn.now }

  /// The actions of the turn.
  var effects: Effects {
    @inline(__always) _read { yield turn.effects }
    @inline(__always) _modify { yield &turn.effects }
  }

  /// Adds hubs that this deployment does not configure but has registrations of.
  mutating func append(_ hubs: [HubName]) {
    for hub in hubs { table.append(hub) }
    lanes.extend(to: table, configuration)
    effects.hasNewHubs = true
  }

  /// Begins a turn, before its events.
  mutating func beginTurn(at now: Moment) {
    turn = Turn(now: now, effects: Effects(senders: table.senders.count))
  }

  /// Ends a turn: hands out work as far as there is room, and collects the actions that have become
  /// due. Returns the actions of the turn.
  mutating func finishTurn() -> Effects {
    walkSegments()
    handOver()
    askRegistry()
    if unknownHubs.ask() { effects.questions.append(.hubs) }
    survey()
    expireRecoveries()
    finishSettling()
    effects.group.commit = partitions.beginCommit(at: now)
    finishDrains()
    effects.group.isToLeave = partitions.leave(at: now)
    effects.tallies.skipped = partitions.takeSkipped()
    effects.pausesSegments = items.pauseSegments(
      hasReachedSpan: partitions.spans.hasReachedSegmentLimit, limits: configuration.limits)
    if partitions.mayTake {
      effects.credit = items.grantCredit(
        unresponsive: lanes.unresponsivePushes,
        spanAllows: partitions.offsets.largestSpan < configuration.limits.maximumSpan, limits: configuration.limits)
    }
    defer { turn.effects = Effects(senders: 0) }
    return turn.effects
  }

  /// The share of the worker's room that is taken, of records, bytes or pushes, whichever is fullest: 0 to 1.
  var saturation: Double {
    let limits = configuration.limits
    return min(1, max(items.held.share(of: limits), Double(lanes.pushes) / Double(limits.maximumPushes)))
  }

  /// Handles the passage of time: everything that has become due.
  mutating func tick() {
    for sender in lanes.indices {
      while let ticket = lanes[sender].popRested(at: now.uptime) { endRest(ticket) }
    }
    while let (production, record) = refusals.popDue(at: now.uptime) {
      if items.isCurrent(production.ticket) { effects.productions.append(production, record) }
    }
    while let question = broadcasts.popDueQuestion(at: now.uptime) { askAgain(question) }
    watchSilence()
    if deferral.isSweepDue(at: now.uptime) {
      partitions.measureSpans(limit: configuration.limits.maximumSpan)
      expireStopped()
      sweepOrder()
      deferStopped()
      deferOverQuota()
      deferOverdueRecords()
      deferLeavingPages()
      deferral.forgetPauses(at: now)
      unserved.forget(at: now.uptime)
    } else if items.held.isShortOfRoom(configuration.limits) {
      // Not later: a second's consumed records may exceed the room.
      deferStopped()
      deferOverQuota(isSweep: false)
    }
    if lanes.isUnregisteringDue(at: now.uptime) { effects.unregistrations += lanes.takeSuspects() }
  }

  /// Why the worker is not ready, in sentences that name no send, user or device; empty when it is.
  var readinessProblems: [ReadinessProblem] {
    var problems: [ReadinessProblem] = []
    if !partitions.hasBeenAssigned { problems.append(ReadinessProblem("no partition has been assigned yet")) }
    if broadcasts.failures > 0 { problems.append(ReadinessProblem("the registry cannot be asked about broadcasts")) }
    if lookUps.failures > 0 { problems.append(ReadinessProblem("the registry cannot be asked")) }
    if let problem = refusals.problem { problems.append(ReadinessProblem(problem)) }
    for place in unserved.places {
      problems.append(
        table.problem(
          ofSender: place, "no credentials are configured, but devices are registered; sends to them are deferred"))
    }
    for (number, lane) in lanes.enumerated() where lane.isStopped {
      let cause =
        switch lane.breaker.cause {
        case .configuration: "the push service refuses the configuration"
        case .outage: "the push service is unavailable"
        }
      problems.append(
        table.problem(ofSender: number, cause + (lane.reason.isEmpty ? "" : ": \(lane.reason)")))
    }
    return problems
  }

  /// Ends the request to unregister devices, successful or not.
  mutating func unregistered() { lanes.unregistered() }

  /// Violations of the invariants, between two turns.
  /// Looks at every item, device and unsettled offset.
  func checkInvariants() -> [String] {
    var violations =
      checkCounters() + items.checkInvariants() + partitions.checkInvariants() + lookUps.checkInvariants()
      + deferral.checkInvariants() + broadcasts.checkInvariants(items: items)
      + unknownHubs.checkInvariants(items: items)
    for sender in lanes.indices { violations += lanes[sender].order.checkInvariants() }
    var (inFlight, checking) = (Array(repeating: 0, count: lanes.count), Array(repeating: 0, count: lanes.count))
    for slot in items.indices {
      violations += checkOffsets(of: slot)
      for device in items[slot].devices where device.sender >= 0 {
        if device.phase == .inFlight { inFlight[device.sender] += 1 }
        if device.phase == .checking { checking[device.sender] += 1 }
      }
    }
    for sender in lanes.indices {
      let places = lanes[sender].places
      // The pushes of items that were given up hold their places until they are answered. Only the driver knows these:
      // it checks that all that are unanswered are those it has handed over.
      if places.checking != checking[sender] || places.unanswered < inFlight[sender] {
        violations.append("lane \(sender) has \(places), its devices \(inFlight[sender]) and \(checking[sender])")
      }
    }
    return violations
  }

  /// Violations that the counters alone show. Its cost does not depend on the number of items.
  func checkCounters() -> [String] {
    var violations = lanes.checkInvariants()
    // Credit is not reduced while partitions are given back.
    if partitions.mayTake {
      violations += items.checkCredit(unresponsive: lanes.unresponsivePushes, limits: configuration.limits)
    }
    return violations
  }

  /// Violations that one item shows.
  func checkInvariants(ofItem slot: Int) -> [String] { items.checkInvariants(slot) + checkOffsets(of: slot) }

  /// While the item is worked on, none of its offsets is settled in the epoch it came in.
  ///
  /// An origin names a record by its number within one assignment. Used in another epoch, it would settle another
  /// record.
  private func checkOffsets(of slot: Int) -> [String] {
    guard items[slot].phase != .vacant else { return [] }
    let isSettled =
      partitions.offsets.isSettled(items[slot].origin)
      || items[slot].source.followers.contains { partitions.offsets.isSettled($0) }
    return isSettled ? ["slot \(slot) is \(items[slot].phase), and its offset settled"] : []
  }
}
