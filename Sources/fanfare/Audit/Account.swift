import FanfareCore

/// Adds up what the records of a deployment's topics say, in whatever order they come. A pure value.
///
/// Holds about 75 bytes for each send, and some more for what is set aside or has several parts of which one is
/// missing.
struct Account {
  /// What is known of one send.
  private struct Send {
    /// The first place of its record, or before that is known of its first status.
    var partition = Int32.max
    var marks: Marks = []
    var offset = Int64.max
    /// When it was accepted, by the log's own time of its first record.
    var time = UnixTime(milliseconds: .max)
  }

  private struct Marks: OptionSet {
    let rawValue: UInt8
    static let accepted = Marks(rawValue: 1)
    static let hasStatus = Marks(rawValue: 2)
    static let settled = Marks(rawValue: 4)
    /// A record of it lies where somebody has still to come.
    static let waits = Marks(rawValue: 8)
    static let waitsInRetryTopic = Marks(rawValue: 16)
    static let isDeadLetter = Marks(rawValue: 32)
  }

  private struct Attempt: Hashable {
    let id: AttemptID?
    let parts: Int
  }

  private let topics: Topics
  private let positions: [String: [Int32: Int64]]
  /// By hub, so that a key has 16 bytes.
  private var hubs: [HubName: [SendID: Send]] = [:]
  /// The parts that have ended, of sends that have not.
  private var parts: [SendKey: [Attempt: Set<Int>]] = [:]
  /// Records of the sends topic that nobody can read.
  private var poison: Set<AuditPlace> = []
  /// Where the dead letters come from, of whatever topic.
  private var letters: Set<AuditPlace> = []
  private var repeated = 0
  private var problems: [AuditProblem] = []
  private var unreadable = 0

  /// An empty account. `positions` is what the workers, and on the retry topics the pumps, have committed, by topic and
  /// partition; without a position nothing of a partition is done.
  init(topics: Topics, positions: [String: [Int32: Int64]]) {
    self.topics = topics
    self.positions = positions
  }

  /// Takes note of what the record at the place says; `time` is the log's own time of it.
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
    case .putOff(let key):
      guard isAhead(place) else { return }
      let marks: Marks = [topics.sends, topics.segments].contains(place.topic) ? .waits : [.waits, .waitsInRetryTopic]
      change(key) { $0.marks.formUnion(marks) }
    case .settled(let key, let part, let parts, let attempt):
      end(part, of: Attempt(id: attempt, parts: parts), of: key, at: place)
    case .setAside(let origin, let send, let isPart):
      letters.insert(origin)
      guard let send else { return }
      if isPart || origin.topic == topics.segments {
        // It has no status of its own, and the broadcast ends when it has been put back.
        change(send) { $0.marks.insert(.waits) }
      } else if origin.topic == topics.sends, !isAhead(origin) {
        // Whoever has not committed it may not have written its status yet.
        change(send) { $0.marks.insert(.isDeadLetter) }
      }
    case .poison:
      if !isAhead(place) { poison.insert(place) }
    case .unreadable:
      unreadable += 1
      note(.unreadable, at: place)
    }
  }

  /// What all of it comes to. `isCutAtStart`: whether the cluster has deleted the beginning of the sends topic.
  /// `statusesFrom`: where it has deleted the beginning of the status topic; sends accepted until then may have had
  /// their status there. `isDeadLetterTopicWhole`: whether it has deleted nothing of the dead-letter topic. All three
  /// as of when everything had been read. `deleted` are the places from which on so many records were deleted unread.
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
      for place in poison.subtracting(letters) {
        report.notSetAside += 1
        account.note(.notSetAside, at: place)
      }
    }
    for (place, records) in deleted {
      report.deletedUnread += Int(clamping: records)
      account.note(.deletedUnread, at: place)
    }
    report.problems = Array(account.problems.sorted(by: Self.precedes).prefix(AuditReport.maximumProblems))
    return report
  }

  private mutating func count(
    _ send: Send, _ key: SendKey, isCutAtStart: Bool, statusesFrom: UnixTime?, into report: inout AuditReport
  ) {
    guard send.marks.contains(.accepted) else {
      guard send.marks.contains(.hasStatus) else { return }
      guard !isCutAtStart else { return report.recordDeleted += 1 }
      report.unannounced += 1
      return note(
        .unannounced, of: key, at: AuditPlace(topic: topics.status, partition: send.partition, offset: send.offset))
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
      report.lost += 1
      note(
        send.marks.contains(.isDeadLetter) ? .deadLetterWithoutStatus : .lost, of: key,
        at: AuditPlace(topic: topics.sends, partition: send.partition, offset: send.offset))
    }
  }

  /// Whether whoever reads the topic has still to come to the place.
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

  /// As the ledger counts: a send has ended with the first complete set of its parts, and everything else of it is
  /// repetition.
  private mutating func end(_ part: Int, of attempt: Attempt, of key: SendKey, at place: AuditPlace) {
    var isSettled = false
    change(key) { send in
      isSettled = send.marks.contains(.settled)
      send.marks.insert(.hasStatus)
      if !send.marks.contains(.accepted) { Self.move(&send, to: place) }
    }
    guard !isSettled else { return repeated += 1 }
    if attempt.parts > 1 {
      guard parts[key, default: [:]][attempt, default: []].insert(part).inserted else { return repeated += 1 }
      guard parts[key]?[attempt]?.count == attempt.parts else { return }
    }
    let others = parts.removeValue(forKey: key) ?? [:]
    for (other, ended) in others where other != attempt { repeated += ended.count }
    change(key) { $0.marks.insert(.settled) }
  }

  /// Keeps a problem, while there are few; they are ordered only at the end.
  private mutating func note(_ kind: AuditProblem.Kind, of send: SendKey? = nil, at place: AuditPlace) {
    guard problems.count < AuditReport.maximumProblems else { return }
    problems.append(
      AuditProblem(
        kind: kind, id: send?.id.description, hub: send?.hub.rawValue, topic: place.topic, partition: place.partition,
        offset: place.offset))
  }

  private static func precedes(_ left: AuditProblem, _ right: AuditProblem) -> Bool {
    (left.kind.rawValue, left.topic, left.partition, left.offset) < (
      right.kind.rawValue, right.topic, right.partition, right.offset
    )
  }
}
