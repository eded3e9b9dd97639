import FanfareCore
import RDKafka
import Support
import Testing

@testable import Worker

/// Readmitted records of pages: the room they take, how long they stay, and how fast they leave.
struct ReturnedPageTests {
  private static let refusal = PushOutcome(.configurationError, reason: "BadTopic", status: 400)
  private static let accepted = PushOutcome(.accepted, status: 200)

  /// Delivers a deferred record.
  private func deliver(_ record: RetryRecord, to desk: inout Desk) { desk.deliver([record.encoded(at: desk.wall)]) }

  @Test func readmittedRecordForStoppedServiceKeepsItsRate() {
    var desk = Desk(retryDelays: [2, 15]) { $0.times.probeInterval = .seconds(2) }
    desk.register("bob", .apns)
    desk.deliver(desk.send(to: .user("bob")))
    desk.answer(desk.pushes[0], Self.refusal)
    deliver(StoppedRoomTests.page(&desk, devices: 200, rate: 20, after: .seconds(4)), to: &desk)
    #expect(desk.retries.count == 1 && desk.held.devices == 1)
    desk.advance(.milliseconds(2_500))
    desk.answer(desk.pushes[1], Self.accepted)
    #expect(desk.circuit(0) == .closed)
    desk.advance(.seconds(2))
    #expect(desk.pushes.count == 2)
  }

  @Test func smallPartOfBroadcastKeepsNoProbe() {
    var desk = Desk(retryDelays: [2, 15])
    deliver(StoppedRoomTests.page(&desk, devices: 8, rate: 20), to: &desk)
    for _ in 1...8 { desk.advance(.milliseconds(50)) }
    #expect(desk.pushes.count == 8)
    desk.answerAll(Self.refusal)
    desk.advance(.seconds(1))
    #expect(
      desk.readmitted == 0 && desk.held.records == 0 && desk.retries.count == 1
    )
  }

  /// A desk with a page that is being pushed, one that has its head start, and one that waits for its turn.
  private func crowded(timeToLive: Int? = nil, maximumSpan: Int = 100) -> Desk {
    var desk = Desk(retryDelays: [2, 15]) {
      $0.broadcasts.pageDevices = 50
      $0.limits.maximumSpan = maximumSpan
      $0.circuit.patience = .seconds(600)
      $0.circuit.silence = .seconds(600)
    }
    deliver(StoppedRoomTests.page(&desk, devices: 40), to: &desk)
    for number in 1...2 {
      deliver(StoppedRoomTests.page(&desk, number: number, devices: 40, timeToLive: timeToLive), to: &desk)
    }
    return desk
  }

  /// Another record of the same broadcast.
  private func next(_ desk: inout Desk, to record: RetryRecord, devices: Int) -> RetryRecord {
    let other = StoppedRoomTests.page(&desk, number: record.part + 1, devices: devices)
    return RetryRecord(
      send: record.send, part: record.part + 1, parts: record.parts, attempt: record.attempt, deferrals: 1,
      devices: other.devices)
  }

  @Test func largeRecordsOfOneBroadcastWaitOneAtATime() {
    var desk = Desk(retryDelays: [2, 15]) { $0.limits.maximumBytes = 40_000 }
    desk.answersQuestions = false
    let first = StoppedRoomTests.page(&desk, devices: 80)
    let records = [first, next(&desk, to: first, devices: 80)]
    desk.deliver(records.map { $0.encoded(at: desk.wall) })
    desk.turn()
    #expect(desk.awaitingTurn == 1 && desk.retries.count == 1)
    desk.answersQuestions = true
    desk.answerQuestions()
    #expect(desk.pushes.count == 80 && desk.awaitingTurn == 0)
  }

  /// `after`: of the second record's devices.
  @Test(arguments: [1, 50], [Duration.zero, .seconds(60)])
  func cancelledRecordEndsAtOnceWithoutResultsOfWithdrawnDevices(parts: Int, after: Duration) {
    var desk = Desk(retryDelays: [2, 15])
    let due = StoppedRoomTests.page(&desk, parts: parts, devices: 2)
    let later = StoppedRoomTests.page(&desk, number: 1, devices: 2, after: after)
    let record = RetryRecord(
      send: due.send, part: 0, parts: parts, attempt: due.attempt, deferrals: 1, devices: due.devices + later.devices)
    desk.broadcasts.controls[record.broadcast] = BroadcastControl(.cancelled, because: .caller)
    deliver(record, to: &desk)
    desk.turn()
    #expect(desk.pushes.isEmpty && desk.retries.isEmpty && desk.held.records == 0)
    #expect(desk.statuses.map(\.state) == [.cancelled] && desk.statuses.allSatisfy { $0.devices.isEmpty })
  }

  @Test func returnedRecordIsDeferredWhenItsPartitionIsGivenBack() throws {
    var desk = Desk(retryDelays: [2, 15]) { $0.broadcasts.maximumBroadcastPushesPerSender = 10 }
    deliver(StoppedRoomTests.page(&desk, devices: 60), to: &desk)
    let begun = desk.pushes.count
    #expect(begun < 60)
    desk.revoke()
    desk.answerAll(Self.accepted)
    desk.answerAll(from: begun, Self.accepted)
    let record = try RetryRecord.decode(try #require(desk.retries.last).value[...], recordTime: desk.wall)
    #expect(desk.retries.count == 1 && record.devices.count == 60 && desk.position == 1)
  }

  @Test func recordWithoutSlotIsDeferredAgain() throws {
    var desk = crowded()
    for _ in 0..<9 { desk.advance(.seconds(1)) }
    #expect(desk.awaitingTurn == 1 && desk.retries.isEmpty)
    for _ in 0..<3 { desk.advance(.seconds(1)) }
    #expect(desk.awaitingTurn == 0 && desk.held.records == 2)
    let times = try desk.retries.map { try RetryRecord.decode($0.value[...], recordTime: desk.wall).notBefore }
    #expect(times.count == 1 && times.allSatisfy { $0 > desk.wall && $0 <= desk.wall + .seconds(2) })
  }

  @Test func pageThatWouldExpireStaysInMemory() {
    var desk = crowded(timeToLive: 12)
    for _ in 0..<11 { desk.advance(.seconds(1)) }
    #expect(desk.awaitingTurn == 1 && desk.retries.isEmpty)
    desk.answerAll(Self.accepted)
    #expect(desk.pushes.count > 80 && desk.awaitingTurn == 0)
  }

  @Test func recordWithoutSlotIsDeferredWhenReadingIsFarAhead() {
    var desk = crowded(maximumSpan: 4)
    desk.advance(.seconds(1))
    #expect(desk.isFarBehind)
    #expect(desk.awaitingTurn == 0 && desk.retries.count == 1)
  }

  @Test func reservationIsAtMostAQuarterOfASecondsPushes() {
    var desk = Desk(retryDelays: [15])
    desk.answersQuestions = false
    deliver(StoppedRoomTests.page(&desk, devices: 200, rate: 20), to: &desk)
    desk.answerQuestions()
    let counts = desk.questions.compactMap { if case .reserve(_, let count, _, _) = $0 { count } else { nil } }
    #expect(counts == [5])
  }

  @Test func onlyPageOfBroadcastIsRecognisedBySize() {
    var desk = Desk(retryDelays: [2, 15]) { ($0.broadcasts.undividedDevices, $0.broadcasts.pageDevices) = (20, 50) }
    var delivered = OutcomeCounts()
    delivered.add(10, to: .init(.apns, .delivered))
    deliver(StoppedRoomTests.page(&desk, parts: 1, devices: 30), to: &desk)
    deliver(StoppedRoomTests.page(&desk, parts: 1, devices: 30), to: &desk)
    #expect(desk.pushes.count == 40 && desk.pushes.allSatisfy { Ticket(rawValue: $0.ticket).isBroadcast })
    // So is one most of which is delivered.
    desk.answerAll(Self.accepted)
    desk.answerAll(from: 40, Self.accepted)
    deliver(StoppedRoomTests.page(&desk, parts: 1, devices: 11, counts: delivered), to: &desk)
    deliver(StoppedRoomTests.page(&desk, parts: 1, devices: 20), to: &desk)
    #expect(desk.pushes[60...].map { Ticket(rawValue: $0.ticket).isBroadcast } == (0..<31).map { $0 < 11 })
  }

  @Test func partlyDeliveredPageIsNotExpiredAsAWhole() {
    var delivered = OutcomeCounts()
    delivered.add(60, to: .init(.apns, .delivered))
    var desk = Desk(retryDelays: [2, 15])
    let rest = StoppedRoomTests.page(&desk, parts: 1, devices: 40, rate: 100, timeToLive: 10, counts: delivered)
    let none = StoppedRoomTests.page(&desk, parts: 1, devices: 40, rate: 100, timeToLive: 10)
    desk.advance(.seconds(11))
    deliver(rest, to: &desk)
    deliver(none, to: &desk)
    #expect(desk.pushes.isEmpty && desk.statuses.map(\.state) == [.settled, .expired])
    #expect(desk.statuses.map(\.counts) == [delivered, OutcomeCounts()])
  }

  @Test func pushDueMuchLaterIsDeferred() {
    var desk = Desk(retryDelays: [2, 15, 60])
    let record = StoppedRoomTests.page(&desk, devices: 8, rate: 20)
    desk.broadcasts.next[BroadcastID(hub: record.send.hub, send: record.send.identity)] = desk.wall + .seconds(40)
    deliver(record, to: &desk)
    desk.advance(.seconds(1))
    #expect(
      desk.pushes.isEmpty && desk.retries.map(\.topic) == ["fanfare.retry.60s"]
        && desk.held.records == 0)
  }

  @Test func pushWaitingForQuotaStaysWhileThereIsRoom() {
    var desk = Desk(retryDelays: [15]) { $0.pushesPerMinute = [.default: [.apns: 60]] }
    desk.answersQuestions = false
    deliver(StoppedRoomTests.page(&desk, devices: 40), to: &desk)
    desk.answerQuestions()
    desk.advance(.seconds(1))
    desk.advance(.seconds(1))
    #expect(
      desk.queued(0) == 40
        && desk.dispatcher.items.allSatisfy { $0.openDevices == $0.devices.count })
  }

  @Test func momentWithoutQuotaDoesNotGiveUpBegunSends() {
    var desk = Desk { $0.pushesPerMinute = [.default: [.fcm: 600]] }
    desk.answersQuestions = false
    desk.register("bob", .fcm, .fcm)
    desk.deliver(desk.send(to: .user("bob")))
    desk.answerQuestions()
    desk.answerAll()
    #expect(desk.pushes.count == 1 && desk.queued(1) == 1)
    desk.shutDown()
    var isToLeave = desk.isToLeave
    #expect(!isToLeave)
    desk.answerQuestions()
    desk.answerAll(from: 1)
    desk.turn()
    #expect(desk.pushes.count == 2 && desk.statuses.count == 1 && desk.position == 1)
    isToLeave = desk.isToLeave
    #expect(isToLeave)
  }

  @Test func pagePausedDuringLookUpIsDeferredOnce() throws {
    var desk = BroadcastTests.desk(devices: 200, retryDelays: [15]) { $0.limits.maximumPushes = 3 }
    _ = BroadcastTests.divided(&desk)
    let broadcast = try #require(desk.broadcasts.plans.keys.first)
    func control(_ control: BroadcastControl.State, _ desk: inout Desk) {
      desk.broadcasts.controls[broadcast] = BroadcastControl(control, because: .caller)
      desk.advance(.milliseconds(600))
      desk.advance(.milliseconds(10))
    }
    BroadcastTests.begin(&desk)
    control(.paused, &desk)
    desk.answersLookUps = false
    control(.running, &desk)
    // Of two places two devices are looked up again, and one push is still on its way.
    let sent = desk.pushes.filter { Ticket(rawValue: $0.ticket).slot == Ticket(rawValue: desk.pushes[0].ticket).slot }
    for push in sent.dropFirst() { desk.answer(push, Self.accepted) }
    #expect(desk.places.reduce(0) { $0 + $1.checking } > 0)
    control(.paused, &desk)
    desk.answer(sent[0], Self.refusal)
    while desk.openLookUp != nil { desk.answerLookUp() }
    control(.running, &desk)
    desk.advance(.seconds(1))
    for item in desk.dispatcher.items where item.phase == .dispatching {
      let open = item.devices.count {
        switch $0.phase {
        case .queued, .checking, .inFlight, .resting: true
        case .done, .deferred, .withdrawn: false
        }
      }
      #expect(item.openDevices == open)
    }
  }
}
