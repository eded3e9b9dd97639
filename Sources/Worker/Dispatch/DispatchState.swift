import DequeModule
import FanfareCore
import RDKafka

/// Everything a worker knows, and every decision it takes: a value that is told what has happened and says what is to
/// be done.
///
/// A record becomes a `WorkItem`. It waits until the sends of the same key before it are through their first attempts,
/// then its devices are looked up, each gets into the queue of its sender, is pushed as room allows, and its outcome is
/// judged. When every device has its result, the status record is written; when that is acknowledged, the record's
/// offset is settled in the `PartitionLedger`.
///
/// One task owns it, calls the methods named after events with everything that has gathered, and ends each turn with
/// `finishTurn`.
struct DispatchState: Sendable {
  let configuration: WorkerConfiguration
  let table: SenderTable
  let topics: Topics

  var ledger = PartitionLedger()
  var recent: RecentSends
  var items: [WorkItem] = []
  var vacant: [Int] = []
  /// The last item of each lane, by the hash of the key. Two keys that collide only wait for one another.
  var lanes: [UInt64: Int32] = [:]
  var senders: [SenderLane]
  /// The sender that has first pick this turn.
  var firstSender = 0
  /// When a push of a single send was last handed over, to any of them.
  var singleAt = -BulkWindow.memory

  /// Items held, but for segments and pages of broadcasts.
  var records = 0
  /// Bytes of their records.
  var bytes = 0
  /// Segments and pages of broadcasts held.
  var segmentsHeld = 0
  /// Bytes of their records.
  var segmentBytes = 0
  /// Devices of items that are being worked on.
  var devices = 0
  /// Pushes handed to senders, and places reserved.
  var pushes = 0
  /// Records asked for that have not come; negative where some came that were not asked for any more.
  var credit = 0
  /// How large they are taken to be.
  var typicalSize = RecordSizeEstimate()
  /// Whether no further segments are to come.
  var holdsBackSegments = false
  /// Whether, a second ago at most, as much was read of them beyond one that is not settled as may be.
  var hasReachedSpanOfSegments = false

  /// Items whose devices are to be looked up.
  var toResolve: Deque<Ticket> = []
  /// What was put off and has come back, and waits for room for its devices.
  var parked: Deque<Parked> = []
  /// What pages have put off and has come back, and waits until what has come back before it is done.
  var parkedPages: Deque<Parked> = []
  /// Bytes of those records.
  var parkedPageBytes = 0
  /// Whether one of them may have room: something has come or gone since none had.
  var mayResumeParkedPages = false
  /// Broadcasts with a rate of which something has come back and is being pushed.
  var ratedReturned: Set<BroadcastID> = []
  /// Broadcasts of which something was put off because they are paused: uptime when that was first so, and until when
  /// some of it must have come back.
  var pauses: [BroadcastID: (since: Int64, until: Int64)] = [:]
  /// Items whose audience may be of any size, and of which it is to be asked how large it is.
  var toSurvey: Deque<Ticket> = []
  /// Devices whose owner is to be looked up once more.
  var toRecheck: Deque<Ticket> = []
  var isLookingUp = false
  /// How often in a row the registry could not be asked.
  var failedLookUps = 0
  var lookUpNotBefore: Int64 = 0
  var isDropping = false
  var dropsDue: Int64 = 0
  var sweepDue: Int64 = 0
  /// Whether so much was read beyond what is not settled, a second ago at most, that nothing is to stay for long: at
  /// the longest span nothing more is read, for any sender.
  var isFarBehind = false

  /// Devices that may be sent to again later.
  var resting = DeadlineQueue<Ticket>()
  /// Devices that wait for older pushes, and when each is looked at although it was not woken.
  var waiting = DeadlineQueue<Ticket>()
  /// Records that Kafka refused.
  var refused = DeadlineQueue<(production: Production, record: ProducerRecord)>()
  /// The topic and error of the last refusal that no waiting will cure; nil since a record of that kind went through.
  var refusal: String?

  var commits: CommitSchedule
  var resumptions: [Resumption] = []
  var lastResumption = 0
  var drains: [Drain] = []
  var shutdownDeadline: Int64?
  /// Whether all that could be settled before the end has been.
  var hasDrained = false
  /// Whether the worker was told to leave the group.
  var isLeaving = false
  /// Whether the group has ever given this worker anything.
  var hasBeenAssigned = false
  var generator: SplitMix64

  /// Segments of broadcasts, in the order in which each gets its next page.
  var segments: Deque<Ticket> = []
  /// Those whose broadcast was paused when last heard of, so that they are not looked at in every turn.
  var pausedSegments: Deque<Ticket> = []
  /// Whether some have come since it was asked what is wanted of the broadcasts.
  var hasNewSegments = false
  /// Pages of broadcasts that are open: the first is being pushed, the next one is looked up meanwhile and gets a head
  /// start.
  var pages: Deque<Ticket> = []
  /// What was last heard about each broadcast of which there is a segment.
  var courses: [BroadcastID: BroadcastControl.State] = [:]
  var isAskingCourses = false
  var coursesDue: Int64 = 0
  /// What the registry could not be asked about broadcasts.
  var unanswered = DeadlineQueue<BroadcastQuestion>()
  /// How often in a row that was so.
  var failedQuestions = 0
  /// Sends of which the registry is asked how many devices they have.
  var openSurveys = 0

  /// A record that was put off, as it came.
  struct Parked: Sendable {
    let ticket: Ticket
    let value: ArraySlice<UInt8>
    /// The log's, in milliseconds; negative: none.
    let timestamp: Int64
    /// The room it wants; meaningful in `parkedPages`.
    var room = WorkItem.Returned(weight: 0, platforms: [], rated: nil)
    /// Uptime since which it has waited for room; meaningful in `parkedPages`, as is its expiry.
    var since: Int64 = 0
    var expiresAt = UnixTime(milliseconds: 0)
  }

  /// Partitions that are being given back.
  struct Drain: Sendable {
    /// Without those that have been assigned anew since.
    var partitions: [TopicPartition]
    let rebalance: Rebalance
    /// Until when what is in flight may settle.
    let deadline: Int64
    /// The number of the commit after which they are given back; nil while work in them may still settle.
    var lastCommit: Int?
  }

  /// Partitions that wait to hear what their last owner has settled.
  struct Resumption: Sendable {
    let number: Int
    let partitions: [TopicPartition]
    let rebalance: Rebalance
    let deadline: Int64
  }

  /// `seed` decides the jitter of delays.
  init(configuration: WorkerConfiguration, table: SenderTable, topics: Topics, seed: UInt64) {
    self.configuration = configuration
    self.table = table
    self.topics = topics
    recent = RecentSends(capacity: configuration.rememberedSends)
    commits = CommitSchedule(
      interval: configuration.commitInterval.milliseconds, metadataBytes: configuration.commitMetadataBytes)
    senders = table.senders.indices.map { number in
      SenderLane(
        bulkWindow: BulkWindow(most: configuration.maximumBulkPushesPerSender),
        gate: SenderGate(
          policy: configuration.circuit, probeInterval: configuration.probeInterval.milliseconds,
          outageProbeInterval: configuration.outageProbeInterval.milliseconds),
        order: OutageOrder(capacity: configuration.maximumOrdered),
        quota: SenderQuota(configuration.quota(of: table.platform(ofSender: number), hub: table.hub(ofSender: number))),
        breaker: DropBreaker(policy: configuration.dropBreaker))
    }
    generator = SplitMix64(seed: seed)
  }

  /// Ends a turn: hands out work as far as there is room, and collects what has become due.
  mutating func finishTurn(at now: Moment, into effects: inout Effects) {
    walkSegments(at: now, into: &effects)
    if !parked.isEmpty { resumeParked(at: now, into: &effects) }
    if !parkedPages.isEmpty { resumeParkedPages(at: now, into: &effects) }
    pump(at: now, into: &effects)
    askRegistry(at: now, into: &effects)
    survey(at: now, into: &effects)
    finishResumptions(at: now, into: &effects)
    finishSettling(at: now, into: &effects)
    commit(at: now, into: &effects)
    finishDrains(at: now, into: &effects)
    leave(at: now, into: &effects)
    effects.tallies.skipped = ledger.takeSkipped()
    let hasRoom =
      segmentsHeld < configuration.maximumSegments && segmentBytes < configuration.maximumSegmentBytes
      && !hasReachedSpanOfSegments
    if holdsBackSegments == hasRoom {
      holdsBackSegments = !hasRoom
      effects.holdsBackSegments = !hasRoom
    }
    effects.credit = creditToGrant()
  }

  /// Time has passed: whatever was to be looked at again by now is.
  mutating func tick(at now: Moment, into effects: inout Effects) {
    while let ticket = resting.popDue(at: now.uptime) {
      guard let device = device(ticket), device.phase == .resting else { continue }
      items[ticket.slot].devices[ticket.device].phase = .queued
      // That of a page that is paused gets into its queue when the page goes on.
      if items[ticket.slot].page?.isParked != true { senders[device.sender].queue.append(ticket) }
    }
    lookAtWaiting(at: now)
    while let (production, record) = refused.popDue(at: now.uptime) {
      if isCurrent(production.ticket) { effects.productions.append(production, record) }
    }
    while let question = unanswered.popDue(at: now.uptime) { askAgain(question, at: now, into: &effects) }
    noticeSilence(at: now, into: &effects)
    if now.uptime < sweepDue {
      // Not later: a second of what is read may be more than there is room for.
      if isShortOfRoom { putOffWhatIsStopped(at: now, into: &effects) }
    } else {
      sweepDue = now.uptime + 1000
      isFarBehind = ledger.largestSpan > configuration.maximumSpan / 2
      hasReachedSpanOfSegments = ledger.largestSpanApart >= configuration.maximumSpan
      sweepStoppedSenders(at: now, into: &effects)
      sweepOrder(at: now)
      putOffWhatIsStopped(at: now, into: &effects)
      putOffWhatExceedsItsQuota(at: now, into: &effects)
      putOffWhatIsParked(at: now, into: &effects)
      putOffWhatIsLeaving(at: now, into: &effects)
      forgetPauses(at: now)
    }
    if now.uptime >= dropsDue {
      dropsDue = now.uptime + 1000
      requestDrops(into: &effects)
    }
  }

  /// What keeps the worker from doing its job now, in words; names no send, user or device.
  var complaints: [String] {
    var complaints: [String] = []
    if !hasBeenAssigned { complaints.append("no partition has been assigned yet") }
    if failedQuestions > 0 { complaints.append("the registry cannot be asked about broadcasts") }
    if failedLookUps > 0 { complaints.append("the registry cannot be asked") }
    if let refusal { complaints.append(refusal) }
    for (number, lane) in senders.enumerated() where lane.gate.state != .closed {
      let cause =
        switch lane.gate.cause {
        case .configuration: "stopped by a configuration error"
        case .outage: "the push service is unavailable"
        }
      complaints.append("\(table.hub(ofSender: number))/\(table.platform(ofSender: number)): \(cause)")
    }
    return complaints
  }

  /// Whether the ticket's item is still the one it was given for.
  func isCurrent(_ ticket: Ticket) -> Bool {
    items[ticket.slot].generation & 0x7_FFFF == ticket.generation && items[ticket.slot].phase != .vacant
  }

  /// The ticket's device, if its item is still being dispatched.
  func device(_ ticket: Ticket) -> DeviceProgress? {
    guard isCurrent(ticket), items[ticket.slot].phase == .dispatching else { return nil }
    return items[ticket.slot].devices[ticket.device]
  }

  /// How far the ticket's device is; nil if its item is not being dispatched any more. Unlike `device`, copies nothing.
  func phase(of ticket: Ticket) -> DeviceProgress.Phase? {
    guard isCurrent(ticket), items[ticket.slot].phase == .dispatching else { return nil }
    return items[ticket.slot].devices[ticket.device].phase
  }

  /// The ticket of an item, or of one of its devices.
  func ticket(_ slot: Int, device: Int = 0) -> Ticket {
    Ticket(slot: slot, generation: items[slot].generation, device: device, isBulk: items[slot].isBulk)
  }

  /// How many records to ask for: only what there is room for, and not in crumbs. Negative: to ask for so many fewer.
  private mutating func creditToGrant() -> Int {
    guard shutdownDeadline == nil, drains.isEmpty else { return 0 }
    let excused = excused
    let left = configuration.maximumBytes + excused.bytes - bytes
    // At least one, however large the last ones were: only by what comes is it known that the next ones are smaller.
    let fitting = left > 0 ? max(1, typicalSize.records(in: left)) : 0
    let change = min(configuration.maximumRecords + excused.records - records, fitting, 2048) - credit
    // What was asked for when the records seemed to be small is taken back once they turn out not to be.
    if change >= 0 {
      guard change > 0, credit <= 0 || change >= min(512, configuration.maximumRecords / 8),
        devices < configuration.maximumDevices, ledger.largestSpan < configuration.maximumSpan
      else { return 0 }
    }
    credit += change
    return change
  }
}
