import FanfareCore

/// Sums up the records of a deployment's topics, in any order. A pure value.
///
/// It takes about 75 bytes per send, and more for dead letters and for sends with an incomplete set of parts.
struct Account {
  private struct Send {
    /// The first place of the send's record; until that is known, of its first status record.
    var partition = Int32.max
    var marks: Marks = []
    var offset = Int64.max
    /// The log's timestamp of the send's first record.
    var time = UnixTime(milliseconds: .max)
  }

  private struct Marks: OptionSet {
    let rawValue: UInt8
    static let accepted = Marks(rawValue: 1)
    static let hasStatus = Marks(rawValue: 2)
    static let settled = Marks(rawValue: 4)
    /// A record of the send has not been consumed yet.
    static let waits = Marks(rawValue: 8)
    static let waitsInRetryTopic = Marks(rawValue: 16)
    static let isDeadLetter = Marks(rawValue: 32)
  }

  private struct Attempt: Hashable {
    let id: DispatchID?
    let parts: Int
  }

  private let topics: Topics
  private let positions: [String: [Int32: Int64]]
  /// The places of known problems, with their reasons.
  private let acknowledged: [AuditPlace: String]
  /// The problems at these places.
  private var known: [AuditProblem] = []
  /// The sends, by hub so that a key takes 16 bytes.
  private var hubs: [HubName: [SendID: Send]] = [:]
  /// The settled parts of sends that are not settled yet.
  private var parts: [SendKey: [Attempt: PartSet]] = [:]
  /// Unreadable records of the sends topic.
  private var poison: Set<AuditPlace> = []
  /// The origins of the dead letters, on any topic.
  private var letters: Set<AuditPlace> = []
  private var repeated = 0
  private var problems: [AuditProblem] = []
  private var unreadable = 0

  /// Creates an empty account.
  ///
  /// `positions` are the committed positions of the workers and, on the retry topics, of the pumps, by topic and
  /// partition. If a partition has no position, none of its records has been consumed. `acknowledged` are the places of
  /// problems that do not count any more, with the reasons.
  init(topics: Topics, positions: [String: [Int32: Int64]], acknowledged: [AuditPlace: String] = [:]) {
    self.topics = topics
    self.positions = positions
    self.acknowledged = acknowledged
  }

  /// Adds a record at a place; `time` is the log's timestamp.
  mutating func add(_ fact: AuditFact, at place: AuditPlace, time: UnixTime) {
    switch fact {
    case .accepted(let key):
      change(key) { send in
        if !send.marks.contains(.accepted) { (send.partition, send.offset) = (.max, .max) }
        send.marks.insert(.accepted)
        send.time = min(send.time, time)
        Self.move(&send, to: place)
      }
      if isAhead(place) { change(key) { $0.marks.insert(.waits) } }
    case .deferred(let key):
      guard isAhead(place) else { return }
      let marks: Marks = [topics.sends, topics.segments].contains(place.topic) ? .waits : [.waits, .waitsInRetryTopic]
      change(key) { $0.marks.formUnion(marks) }
    case .settled(let key, let part, let parts, let span, let attempt):
      end(part..<part + span, of: Attempt(id: attempt, parts: parts), of: key, at: place)
    case .deadLettered(let origin, let send, let isPart):
      letters.insert(origin)
      guard let send else { return }
      if isPart || origin.topic == topics.segments {
        // A segment has no status record; the broadcast ends when the segment is redriven.
        change(send) { $0.marks.insert(.waits) }
      } else if origin.topic == topics.sends, !isAhead(origin) {
        // The status record may be missing until the dead-lettered record is committed.
        change(send) { $0.marks.insert(.isDeadLetter) }
      }
    case .poison:
      if !isAhead(place) { poison.insert(place) }
    case .unreadable:
      if note(.unreadable, at: place) { unreadable += 1 }
    }
  }

  /// Computes the result.
  ///
  /// `isCutAtStart`: the cluster has deleted the beginning of the sends topic. `statusesFrom`: the status topic is
  /// complete from this time on; the statuses of earlier sends may have been deleted. `isDeadLetterTopicWhole`: no
  /// record of the dead-letter topic was deleted. These three hold for the end of the reading. `deleted`: the places
  /// and numbers of records deleted unread.
  func report(
    isCutAtStart: Bool = false, statusesFrom: UnixTime? = nil, isDeadLetterTopicWhole: Bool = true,
    deleted: [(place: AuditPlace, records: Int64)] = []
  ) -> AuditReport {
    var account = self
    var report = AuditReport()
    report.repeated = repeated
    report.deadLettered = letters.count
    report.unreadable = unreadable
    for (hub, sends) in hubs {
      for (id, send) in sends {
        account.count(
          send, SendKey(hub: hub, id: id), isCutAtStart: isCutAtStart, statusesFrom: statusesFrom, into: &report)
      }
    }
    if isDeadLetterTopicWhole {
      for place in poison.subtracting(letters) where account.note(.notSetAside, at: place) { report.notSetAside += 1 }
    }
    for (place, records) in deleted where account.note(.deletedUnread, at: place) {
      report.deletedUnread += Int(clamping: records)
    }
    report.acknowledged = account.known.sorted(by: Self.precedes)
    report.problems = Array(account.problems.sorted(by: Self.precedes).prefix(AuditReport.maximumProblems))
    return report
  }

  private mutating func count(
    _ send: Send, _ key: SendKey, isCutAtStart: Bool, statusesFrom: UnixTime?, into report: inout AuditReport
  ) {
    guard send.marks.contains(.accepted) else {
      guard send.marks.contains(.hasStatus) else { return }
      guard !isCutAtStart else { return report.recordDeleted += 1 }
      let place = AuditPlace(topic: topics.status, partition: send.partition, offset: send.offset)
      if note(.unannounced, of: key, at: place) { report.unannounced += 1 }
      return
    }
    report.accepted += 1
    if send.marks.contains(.settled) {
      report.settled += 1
    } else if send.marks.contains(.waits) {
      report.inFlight += 1
      if send.marks.contains(.waitsInRetryTopic) { report.waitingInRetryTopics += 1 }
    } else if let statusesFrom, send.time <= statusesFrom {
      report.statusDeleted += 1
    } else {
      let kind = send.marks.contains(.isDeadLetter) ? AuditProblem.Kind.deadLetterWithoutStatus : .lost
      let place = AuditPlace(topic: topics.sends, partition: send.partition, offset: send.offset)
      if note(kind, of: key, at: place) { report.lost += 1 } else { report.lostAcknowledged += 1 }
    }
  }

  /// Whether the topic's consumers have not reached the place yet.
  private func isAhead(_ place: AuditPlace) -> Bool {
    guard let position = positions[place.topic]?[place.partition] else { return true }
    return place.offset >= position
  }

  private mutating func change(_ key: SendKey, _ body: (inout Send) -> Void) {
    body(&hubs[key.hub, default: [:]][key.id, default: Send()])
  }

  private static func move(_ send: inout Send, to place: AuditPlace) {
    guard (place.partition, place.offset) < (send.partition, send.offset) else { return }
    (send.partition, send.offset) = (place.partition, place.offset)
  }

  /// Counts consecutive settled parts like the ledger.
  ///
  /// The first complete set of parts settles a send; all other parts are repetitions.
  private mutating func end(_ ended: Range<Int>, of attempt: Attempt, of key: SendKey, at place: AuditPlace) {
    var isSettled = false
    change(key) { send in
      isSettled = send.marks.contains(.settled)
      send.marks.insert(.hasStatus)
      if !send.marks.contains(.accepted) { Self.move(&send, to: place) }
    }
    guard !isSettled else { return repeated += ended.count }
    if attempt.parts > 1 {
      let missing = parts[key, default: [:]][attempt, default: PartSet()].insert(ended)
      repeated += ended.count - missing
      guard missing > 0, parts[key]?[attempt]?.count == attempt.parts else { return }
    }
    let others = parts.removeValue(forKey: key) ?? [:]
    for (other, ended) in others where other != attempt { repeated += ended.count }
    change(key) { $0.marks.insert(.settled) }
  }

  /// Adds a problem up to the maximum. `report` sorts the problems.
  ///
  /// - Returns: Whether it counts: false if its place is acknowledged.
  private mutating func note(_ kind: AuditProblem.Kind, of send: SendKey? = nil, at place: AuditPlace) -> Bool {
    var problem = AuditProblem(
      kind: kind, id: send?.id.description, hub: send?.hub.rawValue, topic: place.topic, partition: place.partition,
      offset: place.offset)
    if let reason = acknowledged[place] {
      problem.reason = reason
      known.append(problem)
      return false
    }
    if problems.count < AuditReport.maximumProblems { problems.append(problem) }
    return true
  }

  private static func precedes(_ left: AuditProblem, _ right: AuditProblem) -> Bool {
    (left.kind.rawValue, left.topic, left.partition, left.offset) < (
      right.kind.rawValue, right.topic, right.partition, right.offset
    )
  }
}
