import FanfareCore
import RDKafka
import Support
import Testing

@testable import fanfare

/// The account as a value: the same records in any order give the same report.
@Suite struct AccountTests {
  private typealias Entry = (fact: AuditFact, place: AuditPlace)

  private static let topics = Topics(retryDelays: [15])
  private static let retry = topics.retries[0].name
  /// The committed offset is 10 on every topic.
  private static let positions = [topics.sends: [Int32(0): Int64(10)], retry: [0: 10]]

  private static func key(_ number: UInt64, hub: HubName = .default) -> SendKey {
    SendKey(hub: hub, id: SendID(high: 1, low: number))
  }

  private static func sends(_ offset: Int64) -> AuditPlace {
    AuditPlace(topic: topics.sends, partition: 0, offset: offset)
  }
  private static func status(_ offset: Int64) -> AuditPlace {
    AuditPlace(topic: topics.status, partition: 0, offset: offset)
  }
  private static func retry(_ offset: Int64) -> AuditPlace { AuditPlace(topic: retry, partition: 0, offset: offset) }
  private static func letter(_ offset: Int64) -> AuditPlace {
    AuditPlace(topic: topics.deadLetter, partition: 0, offset: offset)
  }

  private static func ended(_ key: SendKey, part: Int = 0, of parts: Int = 1, attempt: DispatchID? = nil) -> AuditFact {
    .settled(key, part: part, parts: parts, attempt: attempt)
  }

  /// The report of the entries; expects the same report for every order of them.
  private func report(_ entries: [Entry], isCutAtStart: Bool = false, statusesFrom: UnixTime? = nil) -> AuditReport {
    let reports = Self.orders(entries).map { entries in
      var account = Account(topics: Self.topics, positions: Self.positions)
      for (fact, place) in entries { account.add(fact, at: place, time: UnixTime(milliseconds: place.offset)) }
      return account.report(isCutAtStart: isCutAtStart, statusesFrom: statusesFrom)
    }
    #expect(reports.allSatisfy { $0 == reports[0] })
    return reports[0]
  }

  private static func orders(_ entries: [Entry]) -> [[Entry]] {
    guard entries.count > 1 else { return [entries] }
    return entries.indices.flatMap { index in
      var rest = entries
      let first = rest.remove(at: index)
      return orders(rest).map { [first] + $0 }
    }
  }

  /// A record of 10,000 pages is one range, and each page counts once.
  @Test func pagesOfRecordsThatOverlapCountOnce() {
    let (key, attempt) = (Self.key(1), DispatchID.random())
    func ended(_ range: Range<Int>, _ offset: Int64) -> Entry {
      (
        .settled(key, part: range.lowerBound, parts: 20_000, span: range.count, attempt: attempt),
        Self.status(offset)
      )
    }
    let entries = [
      (AuditFact.accepted(key), Self.sends(1)), ended(0..<10_000, 1), ended(9_990..<10_001, 2),
      ended(10_000..<20_000, 3),
    ]
    #expect(report(Array(entries.dropLast())).settled == 0)
    let whole = report(entries)
    #expect((whole.settled, whole.repeated, whole.lost) == (1, 11, 0))
  }

  @Test func setOfPartsCountsEachOnce() {
    var generator = SeededGenerator(seed: 5)
    var (parts, model) = (PartSet(), Set<Int>())
    for _ in 0..<500 {
      let first = Int.random(in: 0..<5000, using: &generator)
      let range = first..<first + Int.random(in: 1...200, using: &generator)
      let before = model.count
      model.formUnion(range)
      #expect(parts.insert(range) == model.count - before)
      #expect(parts.count == model.count)
    }
  }

  @Test func acknowledgedProblemsDoNotCount() {
    func report(_ acknowledged: [AuditPlace: String]) -> AuditReport {
      var account = Account(topics: Self.topics, positions: Self.positions, acknowledged: acknowledged)
      account.add(.unreadable, at: Self.status(4), time: UnixTime(milliseconds: 0))
      account.add(.accepted(Self.key(1)), at: Self.sends(3), time: UnixTime(milliseconds: 0))
      account.add(Self.ended(Self.key(2)), at: Self.status(7), time: UnixTime(milliseconds: 0))
      account.add(.poison, at: Self.sends(5), time: UnixTime(milliseconds: 0))
      return account.report(deleted: [(Self.sends(0), 2)])
    }
    let all = [Self.status(4), Self.sends(3), Self.status(7), Self.sends(5), Self.sends(0)]
    let counted = report([:])
    #expect(counted.problems.count == 5 && counted.acknowledged.isEmpty && !counted.isSound)
    let known = report(Dictionary(uniqueKeysWithValues: all.map { ($0, "a trial\u{1B}") }))
    #expect(known.problems.isEmpty && known.acknowledged.count == 5 && known.isSound)
    #expect(known.lost == 0 && known.unreadable == 0 && known.lostAcknowledged == 1)
    let lines = known.text.joined(separator: "\n")
    #expect(lines.contains("  unreadable fanfare.status/0/4: a trial\\u{1b}") && lines.contains("Nothing is wrong."))
    #expect(report([Self.status(4): "a trial"]).problems.count == 4)
  }

  @Test func sendIsSettledInFlightOrLost() {
    let report = report([
      (.accepted(Self.key(1)), Self.sends(3)), (Self.ended(Self.key(1)), Self.status(0)),
      (.accepted(Self.key(2)), Self.sends(10)), (.accepted(Self.key(3)), Self.sends(9)),
      (.accepted(Self.key(1, hub: HubName("other") ?? .default)), Self.sends(11)),
    ])
    #expect((report.accepted, report.settled, report.inFlight, report.lost) == (4, 1, 2, 1))
    #expect(
      report.problems == [
        AuditProblem(
          kind: .lost, id: Self.key(3).id.description, hub: "default", topic: "fanfare.sends", partition: 0, offset: 9)
      ])
    #expect(!report.isSound)
  }

  @Test func sendPostedTwiceIsPushedOnce() {
    let report = report([
      (.accepted(Self.key(1)), Self.sends(3)), (.accepted(Self.key(1)), Self.sends(12)),
      (.accepted(Self.key(2)), Self.sends(4)), (.accepted(Self.key(2)), Self.sends(5)),
      (Self.ended(Self.key(2)), Self.status(0)),
    ])
    #expect((report.accepted, report.settled, report.inFlight, report.isSound) == (2, 1, 1, true))
  }

  @Test func deferredSendIsInFlightOnAnyTopic() {
    var report = report([
      (.accepted(Self.key(1)), Self.sends(1)), (.deferred(Self.key(1)), Self.retry(10)),
      (.accepted(Self.key(2)), Self.sends(2)), (.deferred(Self.key(2)), Self.retry(4)),
      (.deferred(Self.key(2)), Self.sends(15)),
    ])
    #expect((report.accepted, report.inFlight, report.waitingInRetryTopics, report.isSound) == (2, 2, 1, true))
    report = self.report([
      (.accepted(Self.key(1)), Self.sends(1)), (.deferred(Self.key(1)), Self.retry(4)),
      (.deferred(Self.key(1)), Self.sends(6)),
    ])
    #expect((report.accepted, report.inFlight, report.lost) == (1, 0, 1))
  }

  @Test func sendSettlesWithAllPartsOfOneAttempt() {
    let (first, second) = (DispatchID(high: 1, low: 1), DispatchID(high: 1, low: 2))
    var report = report([
      (.accepted(Self.key(1)), Self.sends(1)),
      (Self.ended(Self.key(1), part: 0, of: 2, attempt: first), Self.status(0)),
      (Self.ended(Self.key(1), part: 1, of: 2, attempt: second), Self.status(1)),
      (Self.ended(Self.key(1), part: 0, of: 3, attempt: first), Self.status(2)),
    ])
    #expect((report.settled, report.lost, report.repeated) == (0, 1, 0))
    report = self.report([
      (.accepted(Self.key(1)), Self.sends(1)),
      (Self.ended(Self.key(1), part: 0, of: 2, attempt: first), Self.status(0)),
      (Self.ended(Self.key(1), part: 1, of: 2, attempt: first), Self.status(1)),
      (Self.ended(Self.key(1), part: 1, of: 2, attempt: first), Self.status(2)),
      (Self.ended(Self.key(1), part: 1, of: 2, attempt: second), Self.status(3)),
    ])
    #expect((report.settled, report.repeated, report.isSound) == (1, 2, true))
    // A deferred part keeps the send in flight.
    report = self.report([
      (.accepted(Self.key(1)), Self.sends(1)),
      (Self.ended(Self.key(1), part: 0, of: 2, attempt: first), Self.status(0)),
      (.deferred(Self.key(1)), Self.retry(20)),
    ])
    #expect((report.settled, report.inFlight, report.isSound) == (0, 1, true))
  }

  @Test func repeatedStatusesAreCountedButNotErrors() {
    let report = report([
      (.accepted(Self.key(1)), Self.sends(1)), (Self.ended(Self.key(1)), Self.status(0)),
      (Self.ended(Self.key(1)), Self.status(1)),
      (Self.ended(Self.key(1)), Self.status(2)),
    ])
    #expect((report.settled, report.repeated, report.isSound) == (1, 2, true))
  }

  @Test func statusWithoutSendIsAnErrorUnlessLogIsCut() {
    let entries: [Entry] = [(Self.ended(Self.key(1)), Self.status(7)), (Self.ended(Self.key(1)), Self.status(8))]
    var report = report(entries)
    #expect((report.accepted, report.settled, report.unannounced) == (0, 0, 1))
    #expect(report.problems.map(\.kind) == [.unannounced])
    #expect(report.problems.map(\.topic) == [Self.topics.status])
    #expect(report.problems.map(\.offset) == [7])
    report = self.report(entries, isCutAtStart: true)
    #expect((report.unannounced, report.recordDeleted, report.isSound) == (0, 1, true))
  }

  @Test func sendWhoseStatusMayBeDeletedIsNotLost() {
    let report = report(
      [(.accepted(Self.key(1)), Self.sends(4)), (.accepted(Self.key(2)), Self.sends(5))],
      statusesFrom: UnixTime(milliseconds: 4))
    #expect((report.accepted, report.statusDeleted, report.lost) == (2, 1, 1))
  }

  @Test func unreadableRecordMustBeDeadLettered() {
    var report = report([
      (.poison, Self.sends(1)), (.deadLettered(Self.sends(1), nil, isPart: true), Self.letter(0)),
      (.deadLettered(Self.sends(1), nil, isPart: true), Self.letter(1)),
      (.poison, Self.sends(10)),
    ])
    #expect((report.deadLettered, report.notSetAside, report.isSound) == (1, 0, true))
    report = self.report([
      (.poison, Self.sends(2)), (.deadLettered(Self.sends(1), nil, isPart: true), Self.letter(0)),
      (.unreadable, Self.status(3)),
    ])
    #expect((report.notSetAside, report.unreadable) == (1, 1))
    #expect(report.problems.map(\.kind) == [.notSetAside, .unreadable])
  }

  @Test func deadLetterOfSendNeedsItsStatus() {
    let known = Self.key(1)
    var report = report([
      (.accepted(known), Self.sends(3)), (.deadLettered(Self.sends(3), known, isPart: false), Self.letter(0)),
    ])
    #expect((report.lost, report.deadLettered) == (1, 1))
    #expect(report.problems.map(\.kind) == [.deadLetterWithoutStatus])
    report = self.report([
      (.accepted(known), Self.sends(3)), (.deadLettered(Self.sends(3), known, isPart: false), Self.letter(0)),
      (Self.ended(known), Self.status(0)),
      // Not committed: its status record may still be written.
      (.accepted(Self.key(2)), Self.sends(13)),
      (.deadLettered(Self.sends(13), Self.key(2), isPart: false), Self.letter(1)),
    ])
    #expect((report.settled, report.inFlight, report.deadLettered, report.isSound) == (1, 1, 2, true))
  }

  @Test func broadcastWithDeadLetteredSegmentIsInFlight() {
    let known = Self.key(1)
    let segment = AuditPlace(topic: Self.topics.segments, partition: 0, offset: 3)
    var report = report([
      (.accepted(known), Self.sends(3)), (.deadLettered(segment, known, isPart: true), Self.letter(0)),
    ])
    #expect((report.inFlight, report.deadLettered, report.isSound) == (1, 1, true))
    report = self.report([
      (.accepted(known), Self.sends(3)), (.deadLettered(segment, known, isPart: true), Self.letter(0)),
      (Self.ended(known), Self.status(0)),
    ])
    #expect((report.settled, report.inFlight, report.isSound) == (1, 0, true))
  }

  /// The status of a page is not the status of its send: other pages may be delivered.
  @Test func broadcastWithDeadLetteredDeferredPageIsInFlight() throws {
    let now = UnixTime(milliseconds: 1)
    let send = SendRequest(
      id: SendID(high: 1, low: 1), acceptedAt: now, audience: .everyone, content: Content.of(wns: "<toast/>"))
    func letter(parts: Int) throws -> Entry {
      let device = RetryRecord.Waiting(
        registration: .random(), platform: .wns, notBefore: now, attempts: 1, heldAttempts: 0, waits: 0,
        wasUnanswered: false,
        firstAttemptAt: now, reason: "", status: 503)
      let rest = RetryRecord(
        send: send, part: 0, parts: parts, attempt: parts > 1 ? .random() : nil, deferrals: 1,
        devices: [.waiting(device)])
      let origin = DeadLetter.Origin(topic: Self.topics.sends, partition: 0, offset: 5)
      let letter = DeadLetter(
        reason: .unknownHub, detail: "", origin: origin, at: now, key: nil, value: rest.encoded(at: now))
      let record = ConsumedRecord(
        topic: Self.topics.deadLetter, partition: 0, offset: 0, timestamp: 0, key: nil, value: letter.encoded()[...])
      return (try #require(AuditFact(record, topics: Self.topics)), Self.letter(0))
    }
    let accepted = Entry(.accepted(Self.key(1)), Self.sends(3))
    var report = report([accepted, try letter(parts: 2)])
    #expect((report.inFlight, report.deadLettered, report.isSound) == (1, 1, true))
    report = self.report([accepted, try letter(parts: 1)])
    #expect(report.problems.map(\.kind) == [.deadLetterWithoutStatus])
  }

  @Test func recordsDeletedUnreadAreAnError() {
    let account = Account(topics: Self.topics, positions: Self.positions)
    let report = account.report(deleted: [(Self.sends(10), 5)])
    #expect((report.deletedUnread, report.isSound) == (5, false))
    #expect(report.problems.map(\.kind) == [.deletedUnread])
  }

  @Test func recordsOfPartitionWithoutPositionAreInFlight() {
    var account = Account(topics: Self.topics, positions: [:])
    account.add(.accepted(Self.key(1)), at: Self.sends(0), time: UnixTime(milliseconds: 0))
    #expect(account.report().inFlight == 1)
  }

  @Test func problemsAreListedUpToAThousand() {
    var account = Account(topics: Self.topics, positions: [Self.topics.sends: [0: 5000]])
    for number in 0..<1500 {
      account.add(.accepted(Self.key(UInt64(number))), at: Self.sends(Int64(number)), time: UnixTime(milliseconds: 0))
    }
    let report = account.report()
    #expect((report.lost, report.problems.count) == (1500, 1000))
  }
}
