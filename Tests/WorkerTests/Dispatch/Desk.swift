import FanfareCore
import RDKafka
import Support
import Testing

@testable import Worker

/// A state machine on a table: time moves by hand, answers come when the test gives them, and everything it wants done
/// is kept to be looked at.
struct Desk {
  static let partition = TopicPartition(topic: "fanfare.sends", partition: 0)
  /// The headers of every record.
  static let headers = [RecordHeader(name: "content-type", text: "application/cloudevents+json")]

  var dispatcher: Dispatcher
  var wall = UnixTime(milliseconds: 1_800_000_000_000)
  var uptime: Int64 = 0
  /// Who is reached, by audience.
  var registry: [Audience: [Target]] = [:]
  /// Since when a registration has been its user's; always, unless it says so here.
  var createdAt: [RegistrationID: UnixTime] = [:]
  /// Whether look-ups fail.
  var isRegistryDown = false
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
  /// Whether questions about what the group has committed are answered at once.
  var answersResumptions = true
  /// The positions that the group has.
  var group: [TopicPartition: PartitionOffset] = [:]
  /// The positions that it has refused, kept for the next owner.
  var kept: [TopicPartition: PartitionOffset] = [:]
  var openCommit: [PartitionOffset] = []
  var commits = 0
  var openResumption: Effects.OffsetQuestion?
  var alarms: [Alarm] = []
  var tallies: [Tallies] = []
  var credit = 0
  var mostPushes = 0
  var isToLeave = false
  private var turns = 0
  /// By its ticket: the sender that each push was handed to, and how many answers it will give.
  private var open: [UInt64: (sender: Int, count: Int)] = [:]
  private var nextOffset: [TopicPartition: Int64] = [:]

  init(
    senders: [HubName: [Platform: any PushSender]] = [
      .default: [.apns: ScriptedSender(.apns), .fcm: ScriptedSender(.fcm)]
    ],
    assign: Bool = true, retryDelays: [Int] = [], configure: (inout WorkerConfiguration) -> Void = { _ in }
  ) {
    var configuration = WorkerConfiguration()
    configuration.times.commitInterval = .zero
    configure(&configuration)
    dispatcher = Dispatcher(
      configuration: configuration, table: SenderTable(senders), topics: Topics(retryDelays: retryDelays), seed: 1)
    if assign { turn { $0.dispatcher.assign([Self.partition], Rebalance {}, at: $0.now, into: &$1) } }
  }

  var now: Moment { Moment(wall: wall, uptime: uptime) }

  /// One turn of the engine, and those that its own answers lead to.
  mutating func turn(_ events: (inout Desk, inout Effects) -> Void = { _, _ in }) {
    var effects = Effects(senders: dispatcher.lanes.count)
    events(&self, &effects)
    dispatcher.finishTurn(at: now, into: &effects)
    checkInvariants()
    mostPushes = max(mostPushes, dispatcher.lanes.pushes)
    for (sender, submitted) in effects.submissions.enumerated() {
      pushes += submitted
      for push in submitted { open[push.ticket] = (sender, (open[push.ticket]?.count ?? 0) + 1) }
    }
    drops += effects.unregistrations.map(\.device)
    if !effects.unregistrations.isEmpty { dispatcher.unregistered() }
    for rebalance in effects.group.completions { rebalance.complete() }
    credit += effects.credit
    alarms += effects.alarms.list
    tallies.append(effects.tallies)
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

  /// After every turn; with many devices in work, which makes it slow, after some of them.
  private mutating func checkInvariants() {
    #if DEBUG
    turns += 1
    guard turns % (1 + (dispatcher.items.count + dispatcher.items.held.devices) / 128) == 0 else { return }
    for violation in dispatcher.checkInvariants() { Issue.record("\(violation)") }
    #endif
  }

  /// The group has the positions, or refuses them.
  mutating func answerCommit(_ error: RDKafkaError? = nil) {
    let offsets = openCommit
    openCommit = []
    if error == nil { for offset in offsets { group[offset.partition] = offset } }
    turn { desk, _ in desk.dispatcher.committed(offsets, error, at: desk.now) }
  }

  /// The group says what it has committed, or does not answer.
  mutating func answerResumption(fails: Bool = false) {
    guard let question = openResumption else { return }
    openResumption = nil
    let committed = question.partitions.compactMap { group[$0] }
    let kept = question.partitions.compactMap { self.kept[$0] }
    turn { $0.dispatcher.recover(question.number, from: fails ? nil : committed, kept: kept, into: &$1) }
  }

  /// The store answers what it was asked about broadcasts.
  mutating func answerQuestions() {
    let asked = questions
    questions = []
    for question in asked {
      let outcome = broadcasts.outcome(
        of: question, registry: registry, limits: dispatcher.configuration.broadcasts, at: wall)
      turn { $0.dispatcher.answer(BroadcastAnswer(question: question, outcome: outcome), at: $0.now, into: &$1) }
    }
  }

  mutating func answerLookUp() {
    guard let lookUp = openLookUp else { return }
    openLookUp = nil
    let targets = lookUp.queries.map { query in
      (registry[query.audience] ?? []).filter { target in
        query.platforms.contains(target.platform)
          && (query.createdBefore.map { (createdAt[target.registration] ?? UnixTime(milliseconds: 0)) <= $0 } ?? true)
      }
    }
    let answer = LookUpAnswer(lookUp: lookUp, targets: isRegistryDown ? nil : targets)
    turn { $0.dispatcher.answer(answer, at: $0.now, into: &$1) }
  }

  /// Kafka has the records, or refuses them: all, or those with these indices.
  mutating func acknowledge(_ error: RDKafkaError? = nil, at indices: Set<Int>? = nil) {
    let productions = unacknowledged
    unacknowledged = Productions()
    var refused: [(index: Int, error: RDKafkaError)] = []
    for (index, (production, record)) in productions.enumerated() {
      if let error, indices?.contains(index) ?? true {
        refused.append((index, error))
        continue
      }
      // Each record is one of the four; the other readings fail.
      if let segment = try? SegmentRecord.decode(record.value[...], recordTime: wall) { segments.append(segment) }
      if let status = try? StatusRecord.decode(record.value[...]) { statuses.append(status) }
      if case .retry = production.kind { retries.append((record.topic, record.value)) }
      if let letter = try? DeadLetter.decode(record.value[...]) { deadLetters.append(letter) }
    }
    let acknowledgement = Acknowledgement(productions: productions, refused: refused)
    turn { $0.dispatcher.acknowledge(acknowledgement, at: $0.now, into: &$1) }
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
    turn { $0.dispatcher.take(records, at: $0.now, into: &$1) }
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
    open[push.ticket]?.count = count - 1
    turn {
      $0.dispatcher.receive([PushResult(ticket: push.ticket, outcome: outcome)], from: sender, at: $0.now, into: &$1)
    }
  }

  /// Answers every push handed over since the number given.
  mutating func answerAll(from first: Int = 0, _ outcome: PushOutcome = PushOutcome(.accepted, status: 200)) {
    for push in pushes[first...] { answer(push, outcome) }
  }

  /// Time passes, and the timer looks.
  mutating func advance(_ duration: Duration) {
    wall = wall + duration
    uptime += duration.milliseconds
    turn { $0.dispatcher.tick(at: $0.now, into: &$1) }
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
    var effects = Effects(senders: dispatcher.lanes.count)
    let records = Array(repeating: record, count: max(0, dispatcher.items.credit.outstanding))
    dispatcher.take(records, at: now, into: &effects)
  }

  /// How many devices rest in memory, and how many wait for older pushes.
  var restingCount: Int { dispatcher.lanes.reduce(0) { $0 + $1.resting.count } }
  var waitingCount: Int { dispatcher.lanes.reduce(0) { $0 + $1.waiting.count } }
  /// When the first of those that wait is looked at.
  var nextWaiting: Int64? { dispatcher.lanes.compactMap(\.waiting.next).min() }

  /// The partitions that were given back although what has settled in them last is not committed.
  var positionsLeft: [[TopicPartition]] {
    alarms.compactMap { alarm in if case .positionsLeft(let partitions, _) = alarm { partitions } else { nil } }
  }

  /// How many sends that had begun were left to the next owner, each time.
  var workLeft: [Int] {
    alarms.compactMap { alarm in if case .workLeft(_, let sends) = alarm { sends } else { nil } }
  }

  /// The offset committed for the partition; nil before the first.
  var position: Int64? { group[Self.partition]?.offset }
}
