import FanfareCore
import RDKafka
import Testing

@testable import Worker

/// Broadcasts that are controlled, slowed down, or in trouble, and those beside them.
extension BroadcastTests {
  /// A broadcast of which one device was deferred, with the record that brings it back.
  private static func deferred(
    _ desk: inout Desk, timeToLive: Int? = nil
  ) throws -> (broadcast: BroadcastID, record: [UInt8]) {
    _ = divided(&desk, timeToLive: timeToLive)
    begin(&desk)
    desk.answer(
      desk.pushes[0], PushOutcome(.retryLater, reason: "TooManyRequests", status: 429, retryAfter: .seconds(20)))
    answerAll(&desk)
    desk.advance(.seconds(30))
    return (try #require(desk.broadcasts.plans.keys.first), try #require(desk.retries.first).value)
  }

  @Test func recordOfCancelledBroadcastIsNotPushedAfterItsReturn() throws {
    var desk = Self.desk(devices: 200, retryDelays: [15])
    let (broadcast, record) = try Self.deferred(&desk)
    desk.broadcasts.controls[broadcast] = BroadcastControl(.cancelled, because: .caller)
    let before = desk.statuses.count
    desk.deliver([record])
    #expect(desk.pushes.count == 200 && desk.statuses.count == before + 1)
    let last = try #require(desk.statuses.last)
    #expect(last.state == .cancelled && last.counts.total > 0)
    #expect(last.devices.map(\.outcome) == [.failed] && last.devices.map(\.reason) == ["TooManyRequests"])
    #expect(Set(desk.statuses.map(\.part)).count == desk.segments[0].pages && desk.held.records == 0)
  }

  @Test func recordOfPausedBroadcastExpiresWithoutBeingPushed() throws {
    var desk = Self.desk(devices: 200, retryDelays: [15])
    var (broadcast, record) = try Self.deferred(&desk, timeToLive: 60)
    desk.broadcasts.controls[broadcast] = BroadcastControl(.paused, because: .caller)
    // Of a minute half is over, and the last record comes back within the last 15 seconds.
    desk.advance(.seconds(20))
    desk.deliver([record])
    #expect(desk.pushes.count == 200 && desk.retries.count == 2)
    record = desk.retries[1].value
    desk.advance(.seconds(16))
    desk.deliver([record])
    desk.turn()
    #expect(desk.pushes.count == 200)
    #expect(desk.statuses.last?.devices.map(\.outcome) == [.expired])
  }

  @Test func recordOfPausedBroadcastIsDeferredAgainUntilItIsResumed() throws {
    var desk = Self.desk(devices: 200, retryDelays: [15])
    var (broadcast, record) = try Self.deferred(&desk)
    desk.broadcasts.controls[broadcast] = BroadcastControl(.paused, because: .caller)
    for round in 2...4 {
      desk.deliver([record])
      #expect(desk.pushes.count == 200 && desk.retries.count == round && desk.held.records == 0)
      record = desk.retries[round - 1].value
      desk.advance(.seconds(16))
    }
    desk.broadcasts.controls[broadcast] = BroadcastControl(.running, because: .caller)
    desk.deliver([record])
    #expect(desk.pushes.count == 201)
    desk.answer(desk.pushes[200], PushOutcome(.accepted, status: 200))
    #expect(desk.statuses.last?.devices.map(\.attempts) == [2])
    #expect(Set(desk.statuses.map(\.part)).count == desk.segments[0].pages)
  }

  /// Kafka's own limit may be less than the largest send.
  @Test(arguments: [RDKafkaError.Code.messageTooLarge, .invalidRecord])
  func segmentThatKafkaNeverTakesIsPushedAfterRedrive(code: RDKafkaError.Code) throws {
    var desk = Self.desk(devices: 200)
    desk.acknowledges = false
    let send = Self.divided(&desk)
    #expect(desk.unacknowledged.count == 3)
    desk.acknowledge(RDKafkaError(code: code, message: "injected"), at: [1])
    desk.acknowledge()
    #expect(desk.deadLetters.map(\.reason) == [.tooLarge] && desk.unacknowledged.isEmpty)
    let letter = try #require(desk.deadLetters.first)
    #expect(letter.origin == DeadLetter.Origin(topic: "fanfare.sends", partition: 0, offset: 0))
    let segment = try SegmentRecord.decode(letter.value[...], recordTime: desk.wall)
    let broadcast = BroadcastID(hub: send.hub, send: send.identity)
    #expect(desk.position == 1 && desk.broadcasts.announced == [broadcast])
    for _ in 0..<10 { desk.advance(.seconds(1)) }
    #expect(desk.unacknowledged.isEmpty && desk.deadLetters.count == 1)
    // Its pages are open until it is redriven.
    #expect(desk.statuses.isEmpty && desk.broadcasts.finished[broadcast] == nil)
    desk.acknowledges = true
    Self.begin(&desk)
    desk.deliver([letter.value], from: Self.partition)
    Self.answerAll(&desk)
    #expect(Set(desk.pushes.map(\.handle)).count == 200)
    #expect(desk.statuses.map(\.part).sorted() == Array(0..<segment.pages))
    #expect(desk.statuses.allSatisfy { $0.state == .settled })
  }

  @Test func tooManyFailuresPauseTheBroadcast() throws {
    var desk = Self.desk(devices: 200) { $0.broadcasts.broadcastFailureSample = 3 }
    _ = Self.divided(&desk)
    Self.begin(&desk)
    Self.answerAll(&desk, PushOutcome(.rejected, reason: "BadTopic", status: 400))
    #expect(desk.broadcasts.controls.values.map(\.cause) == [.failures])
    #expect(desk.pushes.count < 60)
    let isAlarm = desk.alarms.contains { if case .broadcastPaused = $0 { true } else { false } }
    #expect(isAlarm)
  }

  @Test func failedStoreIsAskedAgain() {
    var desk = Self.desk(devices: 200)
    desk.broadcasts.isDown = true
    desk.answersQuestions = false
    _ = Self.divided(&desk)
    desk.answerQuestions()
    #expect(!desk.readinessProblems.isEmpty)
    desk.broadcasts.isDown = false
    desk.answersQuestions = true
    desk.advance(.seconds(6))
    Self.begin(&desk)
    Self.answerAll(&desk)
    #expect(desk.pushes.count == 200)
  }

  @Test func pausedBroadcastsLeaveRoomForSingleSends() throws {
    var desk = Self.desk(devices: 200) {
      $0.limits.maximumRecords = 4
      $0.limits.maximumSegments = 8
    }
    _ = Self.divided(&desk)
    let broadcast = try #require(desk.broadcasts.plans.keys.first)
    desk.broadcasts.controls[broadcast] = BroadcastControl(.paused, because: .caller)
    Self.begin(&desk)
    #expect(desk.held.records == 0 && desk.held.segments == 3)
    let before = desk.credit
    desk.register("bob", .fcm)
    for _ in 0..<4 { desk.deliver(desk.send(to: .user("bob"))) }
    desk.answerAll()
    #expect(desk.credit > before, "more is asked for")
    #expect(!desk.pausesSegments)
    // But no more segments than there is room for; single sends go on coming all the same.
    var others: [BroadcastID] = []
    for _ in 0..<2 {
      desk.segments = []
      let other = Self.divided(&desk)
      others.append(BroadcastID(hub: other.hub, send: other.identity))
      desk.broadcasts.controls[others[others.count - 1]] = BroadcastControl(.paused, because: .caller)
      Self.begin(&desk)
    }
    #expect(desk.held.segments == 9 && desk.pausesSegments)
    let full = desk.credit
    for _ in 0..<4 { desk.deliver(desk.send(to: .user("unregistered"))) }
    #expect(desk.credit > full)
    for other in others { desk.broadcasts.controls[other] = BroadcastControl(.cancelled, because: .caller) }
    for _ in 0..<5 { desk.advance(.seconds(2)) }
    #expect(desk.held.segments == 3 && !desk.pausesSegments)
  }

  @Test func slowBroadcastDoesNotDelayAnother() throws {
    var desk = Self.desk(devices: 200)
    let slow = Self.divided(&desk, rate: 1)
    Self.begin(&desk)
    Self.answerAll(&desk)
    desk.advance(.milliseconds(50))
    desk.segments = []
    let other = Self.divided(&desk)
    Self.begin(&desk)
    for _ in 0..<20 {
      Self.answerAll(&desk)
      desk.advance(.milliseconds(50))
    }
    #expect(desk.statuses.count { $0.send == other.id } == other.pages(in: desk))
    #expect(desk.pushes.count > 200 && desk.pushes.count <= 203)
    for _ in 0..<250 {
      desk.advance(.seconds(1))
      Self.answerAll(&desk)
    }
    #expect(desk.pushes.count == 400)
    #expect(desk.statuses.count { $0.send == slow.id } == slow.pages(in: desk))
    #expect(
      desk.held.segments == 0 && desk.held.segmentBytes == 0
        && desk.held.records == 0)
  }

  @Test func slowBroadcastIsPushedPageByPage() {
    var desk = Self.desk(devices: 200)
    _ = Self.divided(&desk, rate: 40)
    Self.begin(&desk)
    for _ in 0..<200 where desk.pushes.count < 200 {
      Self.answerAll(&desk)
      desk.advance(.milliseconds(50))
      #expect(desk.dispatcher.items.count { $0.isPage && !$0.devices.isEmpty } <= 1)
    }
    #expect(desk.pushes.count == 200)
  }

  @Test func pageThatExpiresWhileItWaitsForItsRateEndsAtOnce() {
    var desk = Self.desk(devices: 200)
    let send = Self.divided(&desk, rate: 1, timeToLive: 3)
    Self.begin(&desk)
    for _ in 0..<65 {
      Self.answerAll(&desk)
      desk.advance(.milliseconds(50))
    }
    let results = desk.statuses.flatMap(\.devices)
    #expect(
      (1...3).contains(desk.pushes.count) && desk.statuses.reduce(0) { $0 + $1.counts.total } == desk.pushes.count)
    #expect(!results.isEmpty && results.allSatisfy { $0.outcome == .expired && $0.attempts == 0 })
    #expect(Set(desk.statuses.map(\.part)).count == send.pages(in: desk) && desk.group[Self.partition]?.offset == 3)
    #expect(
      desk.held.records == 0 && desk.held.devices == 0
        && desk.takenPlaces == 0)
  }

  @Test func statusThatIsTooLargeOnlyCountsItsDevices() throws {
    var desk = Self.desk(devices: 200)
    desk.acknowledges = false
    let send = Self.divided(&desk)
    desk.acknowledge()
    Self.begin(&desk)
    Self.answerAll(&desk, PushOutcome(.rejected, reason: "BadTopic", status: 400))
    let pushed = desk.pushes.count
    desk.acknowledge(RDKafkaError(code: .messageTooLarge, message: "too large"))
    desk.acknowledge()
    #expect(desk.statuses.count == 1 && desk.statuses[0].send == send.id && desk.statuses[0].devices.isEmpty)
    let page = desk.statuses[0].counts[.rejected]
    #expect(page > 0 && pushed == page + Self.headStart(behind: page))
    desk.turn()
    #expect(desk.pushes.count > pushed, "the next page")
  }

  @Test func broadcastThatExpiresDuringRegistryOutageEndsAfterIt() {
    var desk = Self.desk(devices: 200)
    desk.broadcasts.isDown = true
    desk.answersQuestions = false
    let send = Self.divided(&desk, timeToLive: 60)
    desk.answerQuestions()
    desk.advance(.seconds(61))
    #expect(desk.questions.count == 1 && desk.statuses.isEmpty, "it may have been divided by somebody else")
    desk.broadcasts.isDown = false
    desk.answerQuestions()
    #expect(desk.statuses.map(\.send) == [send.id] && desk.statuses[0].state == .expired)
    #expect(desk.dispatcher.broadcasts.openSurveys == 0 && desk.held.records == 0)
  }

  @Test func pageThatIsGivenUpIsBegunAgainWhereItsSegmentStays() throws {
    var desk = Self.desk(devices: 200) { $0.limits.maximumPushes = 3 }
    let other = TopicPartition(topic: "fanfare.segments", partition: 1)
    desk.assign([other])
    _ = Self.divided(&desk)
    Self.begin(&desk)
    // The same segments once more, as a producer that was not answered may have written them.
    desk.deliver(desk.segments.map { $0.encoded(at: desk.wall) }, from: other)
    desk.lose([Self.partition])
    #expect(desk.held.segments >= 3)
    for push in desk.pushes { desk.answer(push, PushOutcome(.accepted, status: 200), from: 0) }
    Self.answerAll(&desk)
    #expect(Set(desk.statuses.map(\.part)).count == desk.segments[0].pages)
    #expect(Set(desk.pushes.map(\.handle)).count == 200 && desk.group[other]?.offset == 3)
  }
}
