import FanfareCore
import RDKafka
import Support
import Testing

@testable import Worker

/// A state machine on a table: time moves by hand, answers come when the test gives them, and all actions are kept for
/// the test to examine.
struct Desk {
  static let partition = TopicPartition(topic: "fanfare.sends", partition: 0)
  /// The headers of every record.
  static let headers = [RecordHeader(name: "content-type", text: "application/cloudevents+json")]

  /// A retry topic from which nothing would come back before it expires: what can, waits in memory.
  static let distant = [100 * 86_400]

  var dispatcher: Dispatcher
  var wall = UnixTime(milliseconds: 1_800_000_000_000)
  var uptime: Int64 = 0
  /// The devices of each audience.
  var registry: [Audience: [Target]] = [:]
  /// Since when a registration has been its user's; always, unless it says so here.
  var createdAt: [RegistrationID: UnixTime] = [:]
  /// Whether look-ups fail.
  var isRegistryDown = false
  /// Whether a device is found by its id in every audience it is in, and not only where a test says so.
  var findsRegistrations = false
  /// The audiences whose look-ups fail.
  var poisoned: Set<Audience> = []
  /// Whether look-ups are answered at once.
  var answersLookUps = true
  /// Whether productions are acknowledged at once.
  var acknowledges = true

  var pushes: [Push] = []
  var unacknowledged = Productions()
  var statuses: [StatusRecord] = []
  /// Deferred records, with their topics.
  var retries: [(topic: String, value: [UInt8])] = []
  var deadLetters: [DeadLetter] = []
  var queries: [AudienceQuery] = []
  var openLookUp: LookUp?
  var drops: [DeadDevice] = []
  /// The store's state of broadcasts.
  var broadcasts = BroadcastDesk()
  /// Whether questions about broadcasts are answered at once; those that are not wait in `questions`.
  var answersQuestions = true
  var questions: [BroadcastQuestion] = []
  var segments: [SegmentRecord] = []
  /// Whether commits are answered at once.
  var answersCommits = true
  /// Whether questions about committed positions are answered at once.
  var answersResumptions = true
  /// The positions that the group has.
  var group: [TopicPartition: PartitionOffset] = [:]
  /// The positions that it has refused, kept for the next owner.
  var kept: [TopicPartition: PartitionOffset] = [:]
  var openCommit: [PartitionOffset] = []
  var commits = 0
  var openResumption: OffsetQuestion?
  var alarms: [Alarm] = []
  var tallies: [Tallies] = []
  var spans: [TraceSpan] = []
  var credit = 0
  var mostPushes = 0
  var isToLeave = false
  /// By its ticket: the sender that each push was handed to, and how many answers it will give.
  private var open: [UInt64: (sender: Int, count: Int)] = [:]
  /// The unanswered pushes of each sender.
  private var unanswered: [Int]
  /// By ticket: the items whose records Kafka has not acknowledged.
  private var unsettled: [Ticket: Unsettled] = [:]
  /// The turns since all invariants were checked, and the slot whose item is checked next.
  private var check = (turns: 0, slot: 0)

  /// An item whose records are on their way to Kafka.
  private struct Unsettled {
    let origins: [Origin]
    /// Records that are not acknowledged.
    var records = 0
    /// Those among them that were refused and not produced again.
    var refused = 0
  }
  private var nextOffset: [TopicPartition: Int64] = [:]

  init(
    senders: [HubName: [Platform: any PushSender]] = [
      .default: [.apns: ScriptedSender(.apns), .fcm: ScriptedSender(.fcm)]
    ],
    assign: Bool = true, retryDelays: [Int] = Desk.distant, isTracing: Bool = false,
    configure: (inout WorkerConfiguration) -> Void = { _ in }
  ) {
    var configuration = WorkerConfiguration()
    configuration.times.commitInterval = .zero
    if retryDelays == Self.distant { configuration.times.longestRest = .seconds(86_400) }
    configure(&configuration)
    dispatcher = Dispatcher(
      configuration: configuration, table: SenderTable(senders), topics: Topics(retryDelays: retryDelays), seed: 1,
      isTracing: isTracing)
    unanswered = Array(repeating: 0, count: dispatcher.lanes.count)
    if assign { self.assign([Self.partition]) }
  }

  var now: Moment { Moment(wall: wall, uptime: uptime) }

  /// One turn of the engine, and those that its own answers lead to.
  mutating func turn(_ events: (inout Dispatcher) -> Void = { _ in }) {
    dispatcher.beginTurn(at: now)
    events(&dispatcher)
    let effects = dispatcher.finishTurn()
    unanswered += Array(repeating: 0, count: dispatcher.lanes.count - unanswered.count)
    note(effects)
    checkInvariants()
    mostPushes = max(mostPushes, dispatcher.lanes.pushes)
    for submitted in effects.submissions {
      pushes += submitted
    }
    drops += effects.unregistrations.map(\.device)
    if !effects.unregistrations.isEmpty { dispatcher.unregistered() }
    for rebalance in effects.group.completions { rebalance.complete() }
    credit += effects.credit
    alarms += effects.alarms.list
    tallies.append(effects.tallies)
    spans += effects.spans
    isToLeave = isToLeave || effects.group.isToLeave
    for (production, record) in effects.productions {
      // Whatever is written.
      if record.headers != Self.headers { Issue.record("\(production.kind) has the headers \(record.headers)") }
      unacknowledged.append(production, record)
    }
    if let lookUp = effects.lookUp {
      openLookUp = lookUp
      queries += lookUp.queries
    }
    if !effects.group.commit.isEmpty {
      openCommit = effects.group.commit
      commits += 1
    }
    openResumption = effects.group.recoveries.first ?? openResumption
    if answersCommits, !openCommit.isEmpty { answerCommit() }
    if answersResumptions, openResumption != nil { answerResumption() }
    if answersLookUps, openLookUp != nil { answerLookUp() }
    questions += effects.questions
    if answersQuestions, !questions.isEmpty { answerQuestions() }
    if acknowledges, !unacknowledged.isEmpty { acknowledge() }
  }

  /// Notes the pushes and records handed over: independently of the dispatcher, which counts the same.
  private mutating func note(_ effects: Effects) {
    for (sender, submitted) in effects.submissions.enumerated() where !submitted.isEmpty {
      unanswered[sender] += submitted.count
      for push in submitted { open[push.ticket] = (sender, (open[push.ticket]?.count ?? 0) + 1) }
    }
    for (production, _) in effects.productions {
      if unsettled[production.ticket] == nil {
        let source = dispatcher.items[production.ticket.slot].source
        // An item that was given up in this very turn settles nothing.
        let isCurrent = dispatcher.items.isCurrent(production.ticket)
        unsettled[production.ticket] = Unsettled(origins: isCurrent ? [source.origin] + source.followers : [])
      }
      if unsettled[production.ticket]?.refused ?? 0 > 0 {
        unsettled[production.ticket]?.refused -= 1
      } else {
        unsettled[production.ticket]?.records += 1
      }
    }
  }

  /// Checks the counters and a few items after every turn, and everything as often as its cost allows: after every turn
  /// of a small test.
  private mutating func checkInvariants() {
    check.turns += 1
    let size = dispatcher.items.count + dispatcher.items.held.devices + unsettled.count
    guard check.turns * 128 < size else {
      check.turns = 0
      for violation in violations() { Issue.record("\(violation)") }
      return
    }
    for violation in dispatcher.checkCounters() + miscountedLanes { Issue.record("\(violation)") }
    for _ in 0..<min(8, dispatcher.items.count) {
      check.slot = (check.slot + 1) % dispatcher.items.count
      guard dispatcher.items[check.slot].devices.count <= 128 else { continue }
      for violation in dispatcher.checkInvariants(ofItem: check.slot) { Issue.record("\(violation)") }
    }
  }

  /// Violations of the dispatcher's invariants, and of those that only its driver can see.
  func violations() -> [String] {
    var violations = dispatcher.checkInvariants() + miscountedLanes
    for (ticket, item) in unsettled where item.origins.contains(where: dispatcher.partitions.offsets.isSettled) {
      violations.append("slot \(ticket.slot) has settled before its \(item.records) records were acknowledged")
    }
    var inFlight = unanswered.map { _ in 0 }
    var orphans = inFlight
    for (ticket, push) in open where dispatcher.items.phase(of: Ticket(rawValue: ticket)) == nil {
      orphans[push.sender] += push.count
    }
    for slot in dispatcher.items.indices {
      for device in dispatcher.items[slot].devices where device.phase == .inFlight { inFlight[device.sender] += 1 }
    }
    for sender in inFlight.indices where inFlight[sender] + orphans[sender] != unanswered[sender] {
      let found = "\(inFlight[sender]) devices and \(orphans[sender]) given up"
      violations.append("lane \(sender) has \(unanswered[sender]) pushes, of \(found)")
    }
    return violations
  }

  /// Lanes whose places are not those of the pushes that were handed over and not answered.
  private var miscountedLanes: [String] {
    dispatcher.lanes.indices.compactMap { sender in
      let counted = dispatcher.lanes[sender].places.unanswered
      return counted == unanswered[sender]
        ? nil : "lane \(sender) counts \(counted) unanswered pushes of \(unanswered[sender])"
    }
  }

  /// The group has the positions, or refuses them.
  mutating func answerCommit(_ error: RDKafkaError? = nil) {
    let offsets = openCommit
    openCommit = []
    if error == nil { for offset in offsets { group[offset.partition] = offset } }
    turn { $0.committed(offsets, error) }
  }

  /// The group answers with its committed positions, or not at all.
  mutating func answerResumption(fails: Bool = false) {
    guard let question = openResumption else { return }
    openResumption = nil
    let committed = question.partitions.compactMap { group[$0] }
    let kept = question.partitions.compactMap { self.kept[$0] }
    turn { $0.recover(OffsetAnswer(number: question.number, committed: fails ? nil : committed, kept: kept)) }
  }

  /// The store answers all open questions about broadcasts.
  mutating func answerQuestions() {
    let asked = questions
    questions = []
    for question in asked {
      let outcome = broadcasts.outcome(
        of: question, registry: registry, limits: dispatcher.configuration.broadcasts, at: wall)
      answer(question, outcome)
    }
  }

  /// The store answers a question, or fails to.
  mutating func answer(_ question: BroadcastQuestion, _ outcome: BroadcastAnswer.Outcome?) {
    turn { $0.answer(BroadcastAnswer(question: question, outcome: outcome)) }
  }

  mutating func answerLookUp() {
    guard let lookUp = openLookUp else { return }
    openLookUp = nil
    let limit = dispatcher.configuration.limits.lookUpDevices
    let found = lookUp.queries.map { query in
      var all = registry[query.audience] ?? []
      if findsRegistrations, case .registration(let id) = query.audience {
        all = registry.values.lazy.flatMap(\.self).first { $0.registration == id }.map { [$0] } ?? []
      }
      let targets = all.prefix(limit).filter { target in
        query.platforms.contains(target.platform)
          && (query.createdBefore.map { (createdAt[target.registration] ?? UnixTime(milliseconds: 0)) <= $0 } ?? true)
      }
      return AudiencePage(
        targets: targets, examined: targets.count, last: all.count > limit ? targets.last?.registration : nil)
    }
    let fails = isRegistryDown || lookUp.queries.contains { poisoned.contains($0.audience) }
    let answer = LookUpAnswer(lookUp: lookUp, found: fails ? nil : found)
    turn { $0.answer(answer) }
  }

  /// Kafka has the records, or refuses them: all, or those with these indices.
  mutating func acknowledge(_ error: RDKafkaError? = nil, at indices: Set<Int>? = nil) {
    let productions = unacknowledged
    unacknowledged = Productions()
    var refused: [(index: Int, error: RDKafkaError)] = []
    for (index, (production, record)) in productions.enumerated() {
      if let error, indices?.contains(index) ?? true {
        refused.append((index, error))
        unsettled[production.ticket]?.refused += 1
        continue
      }
      unsettled[production.ticket]?.records -= 1
      if unsettled[production.ticket]?.records == 0 { unsettled[production.ticket] = nil }
      // Each record is one of the four; the other readings fail.
      if let segment = try? SegmentRecord.decode(record.value[...], recordTime: wall) { segments.append(segment) }
      if let status = try? StatusRecord.decode(record.value[...]) { statuses += status.eachPart }
      if case .retry = production.kind { retries.append((record.topic, record.value)) }
      if let letter = try? DeadLetter.decode(record.value[...]) { deadLetters.append(letter) }
    }
    let acknowledgement = Acknowledgement(productions: productions, refused: refused)
    turn { $0.acknowledge(acknowledgement) }
  }

  /// A record comes from the partition.
  mutating func deliver(_ values: [[UInt8]], key: String? = nil, from partition: TopicPartition = Desk.partition) {
    let records = values.map { value in
      let offset = nextOffset[partition, default: 0]
      nextOffset[partition] = offset + 1
      return ConsumedRecord(
        topic: partition.topic, partition: partition.partition, offset: offset, timestamp: wall.milliseconds,
        key: key.map { Array($0.utf8)[...] }, value: value[...])
    }
    turn { $0.take(records) }
  }

  /// Sends come from the partition, each with the key its audience has.
  mutating func deliver(_ sends: SendRequest..., from partition: TopicPartition = Desk.partition) {
    for send in sends {
      let key = String(decoding: send.audience.recordKey(of: send.id, hub: send.hub), as: UTF8.self)
      deliver([send.encoded()], key: key, from: partition)
    }
  }

  /// The service answers a push.
  mutating func answer(_ push: Push, _ outcome: PushOutcome) {
    answer(push, outcome, from: open[push.ticket]?.sender ?? 0)
  }

  /// The service answers a push, whatever has become of its item.
  mutating func answer(_ push: Push, _ outcome: PushOutcome, from sender: Int) {
    // A service answers a push once.
    guard let count = open[push.ticket]?.count, count > 0 else { return turn() }
    answer([PushResult(ticket: push.ticket, outcome: outcome)], from: sender)
  }

  /// A service answers pushes that it has.
  mutating func answer(_ results: [PushResult], from sender: Int) {
    for result in results {
      open[result.ticket]?.count -= 1
      if open[result.ticket]?.count == 0 { open[result.ticket] = nil }
    }
    unanswered[sender] -= results.count
    turn { $0.receive(results, from: sender) }
  }

  /// Answers every push handed over since the number given.
  mutating func answerAll(from first: Int = 0, _ outcome: PushOutcome = PushOutcome(.accepted, status: 200)) {
    for push in pushes[first...] { answer(push, outcome) }
  }

  /// Time passes, and the timer looks.
  mutating func advance(_ duration: Duration) {
    wall = wall + duration
    uptime += duration.milliseconds
    turn { $0.tick() }
  }

  /// Registers devices of a user and returns them.
  mutating func register(_ user: String, _ platforms: Platform...) {
    registry[.user(user)] = platforms.enumerated().map { Desk.target("\(user)-\($0)", $1) }
  }

  static func target(_ handle: String, _ platform: Platform) -> Target {
    Target(
      registration: UnregisteredDevice.target(
        hub: .default, platform: platform, handle: handle, at: UnixTime(milliseconds: 0)
      )
      .registration,
      platform: platform, handle: handle, registeredAt: UnixTime(milliseconds: 0))
  }

  func send(
    to audience: Audience, hub: HubName = .default, timeToLive: Int? = nil,
    content: Content = Content(message: Message(body: "hello"))
  ) -> SendRequest {
    SendRequest(
      id: .random(), hub: hub, sender: "tester", acceptedAt: wall, audience: audience, content: content,
      timeToLive: timeToLive)
  }

  /// Records come that are not this worker's, until no credit is left.
  mutating func useUpCredit() {
    let record = ConsumedRecord(
      topic: dispatcher.topics.segments, partition: 99, offset: 0, timestamp: -1, key: nil, value: [])
    let records = Array(repeating: record, count: max(0, dispatcher.items.credit.outstanding))
    dispatcher.beginTurn(at: now)
    dispatcher.take(records)
  }
}

extension StatusRecord {
  /// A record for each work item that this one stands for.
  fileprivate var eachPart: [StatusRecord] {
    guard span > 1 else { return [self] }
    return (part..<part + span).map { number in
      StatusRecord(
        send: send, hub: hub, part: number, parts: parts, attempt: attempt, state: state, sender: sender,
        audience: audience, acceptedAt: acceptedAt, settledAt: settledAt, devices: [], traceparent: traceparent,
        tracestate: tracestate)
    }
  }
}
