import FanfareCore
import Support
import Testing

@testable import Worker

/// A push service that does not answer, or takes little, leaves room to the others.
struct StoppedRoomTests {
  private func desk(
    retryDelays: [Int] = [2, 15, 60, 300], _ configure: (inout WorkerConfiguration) -> Void = { _ in }
  ) -> Desk {
    var desk = Desk(retryDelays: retryDelays, configure: configure)
    for number in 0..<200 {
      desk.register("a\(number)", .apns)
      desk.register("f\(number)", .fcm)
    }
    return desk
  }

  /// A deferred record of one of `parts` pages, with `devices` devices; the others of the page are counted. The devices
  /// are iPhones and due at once, unless the caller says otherwise.
  static func page(
    _ desk: inout Desk, number: Int = 0, parts: Int = 50, devices: Int, of hub: HubName = .default,
    on platform: Platform = .apns, rate: Int? = nil, after delay: Duration = .zero, timeToLive: Int? = nil,
    counts: OutcomeCounts = OutcomeCounts()
  ) -> RetryRecord {
    let targets = (0..<devices).map { Desk.target("p\(number)-\($0)", platform) }
    for target in targets { desk.registry[.registration(target.registration)] = [target] }
    let waiting = targets.map { target in
      RetryRecord.Device.waiting(
        RetryRecord.Waiting(
          registration: target.registration, platform: platform, notBefore: desk.wall + delay, attempts: 0,
          heldAttempts: 0,
          waits: 0, wasUnanswered: false, firstAttemptAt: nil, reason: "", status: 0))
    }
    let send = SendRequest(
      id: .random(), hub: hub, sender: "tester", acceptedAt: desk.wall, audience: .tag("news"),
      content: Content(message: Message(body: "hello")), timeToLive: timeToLive, maximumPerSecond: rate)
    return RetryRecord(
      send: send, part: number, parts: parts, attempt: parts > 1 ? SegmentRecord.attempt(of: send) : nil, deferrals: 1,
      devices: waiting, counts: counts)
  }

  @Test func silenceDoesNotCountWithoutPushesInFlight() {
    var desk = desk { $0.retry.unansweredRetries = 0 }
    desk.deliver(desk.send(to: .user("a0")))
    desk.answer(desk.pushes[0], PushOutcome(.unknown, reason: "DeadlineExceeded"))
    #expect(desk.statuses.count == 1)
    desk.advance(.seconds(3600))
    for number in 0..<30 { desk.deliver(desk.send(to: .user("a\(number)"))) }
    desk.advance(.milliseconds(50))
    #expect(
      desk.circuit(0) == .closed && !desk.isSilent(0)
        && desk.alarms.isEmpty)
    desk.advance(.seconds(6))
    #expect(desk.circuit(0) == .open, "but nothing for six seconds is")
  }

  @Test func stoppedPlatformKeepsNoLargeRecordsAsProbes() {
    var desk = desk { $0.limits.maximumPushes = 1 }
    desk.deliver(desk.send(to: .user("a0")))
    for number in 0..<6 { desk.deliver([Self.page(&desk, number: number, devices: 100).encoded(at: desk.wall)]) }
    desk.answer(desk.pushes[0], PushOutcome(.configurationError, reason: "BadTopic", status: 400))
    #expect(desk.circuit(0) == .open && desk.held.records == 7)
    desk.advance(.seconds(1))
    #expect(!desk.dispatcher.items.contains { $0.isBroadcast && $0.phase == .dispatching })
    #expect(desk.retries.count == 6 && desk.held.records == 1)
  }

  @Test func recordsOfSilentServiceAreExemptFromLimits() {
    var desk = desk(retryDelays: Desk.distant) { $0.limits.maximumRecords = 60 }
    desk.credit = 0
    // As many as were asked for when the worker began; none of them is answered.
    for number in 0..<60 { desk.deliver(desk.send(to: .user("a\(number)"))) }
    desk.advance(.seconds(1))
    #expect(desk.credit == 0)
    desk.advance(.milliseconds(1_100))
    #expect(desk.isSilent(0))
    #expect(desk.credit == 60)
    for number in 60..<120 { desk.deliver(desk.send(to: .user("a\(number)"))) }
    desk.advance(.milliseconds(50))
    #expect(desk.outstandingCredit + desk.held.records <= 120, "no more than as many again")
  }

  @Test func crowdingSilentServiceOpensCircuitSooner() {
    var desk = desk {
      $0.limits.maximumRecords = 60
      $0.limits.maximumPushesPerSender = 25
    }
    for number in 0..<60 { desk.deliver(desk.send(to: .user("a\(number)"))) }
    desk.advance(.milliseconds(1_990))
    #expect(desk.circuit(0) == .closed)
    desk.advance(.milliseconds(50))
    #expect(desk.circuit(0) == .open)
    desk.advance(.milliseconds(50))
    #expect(desk.queued(0) == 4 && desk.retries.count == 31)
  }

  @Test func expiringPushesLeaveStoppedServiceWhenRoomIsShort() throws {
    var desk = desk(retryDelays: [15, 60, 300]) { $0.limits.maximumRecords = 60 }
    desk.deliver(desk.send(to: .user("a0")))
    desk.answer(desk.pushes[0], PushOutcome(.configurationError, reason: "BadTopic", status: 400))
    for number in 1..<101 { desk.deliver(desk.send(to: .user("a\(number)"), timeToLive: 10)) }
    #expect(desk.held.records == 101 && desk.outstandingCredit <= 0)
    desk.advance(.milliseconds(50))
    #expect(desk.held.records == 4 && desk.outstandingCredit > 0)
    desk.deliver(desk.send(to: .user("f0")))
    desk.answerAll(from: 1)
    #expect(desk.statuses.count == 1 && desk.statuses[0].devices.map(\.outcome) == [.delivered])
    desk.advance(.seconds(16))
    desk.deliver(desk.retries.map(\.value))
    desk.advance(.seconds(1))
    #expect(desk.statuses.count { $0.state == .expired || $0.devices.map(\.outcome) == [.expired] } == 100)
  }

  @Test func expiredReadmittedPushesEndWhenRoomIsShort() {
    var desk = desk(retryDelays: [15, 60, 300]) { $0.limits.maximumRecords = 60 }
    desk.deliver(desk.send(to: .user("a0")))
    desk.answer(desk.pushes[0], PushOutcome(.configurationError, reason: "BadTopic", status: 400))
    for number in 1..<101 { desk.deliver(desk.send(to: .user("a\(number)"), timeToLive: 10)) }
    desk.advance(.milliseconds(50))
    let putOff = desk.retries.map(\.value)
    desk.advance(.seconds(16))
    desk.deliver(putOff)
    for _ in 0..<25 { desk.advance(.milliseconds(50)) }
    #expect(desk.retries.count == putOff.count && putOff.count > 90)
    #expect(desk.statuses.count { $0.state == .expired || $0.devices.map(\.outcome) == [.expired] } == 100)
  }

  @Test func pagesOfReadmittedRecordsExpire() {
    var desk = desk(retryDelays: [15, 60, 300]) { $0.limits.maximumBytes = 20_000 }
    desk.deliver(desk.send(to: .user("a0")))
    desk.answer(desk.pushes[0], PushOutcome(.configurationError, reason: "BadTopic", status: 400))
    for number in 0..<6 {
      desk.deliver([Self.page(&desk, number: number, devices: 50, timeToLive: 10).encoded(at: desk.wall)])
    }
    // One after another: each has its turn.
    for _ in 0..<6 { desk.advance(.milliseconds(50)) }
    #expect(desk.held.records == 1 && desk.retries.count == 6)
  }

  @Test func pushesExpiringBeforeQuotaLeaveWhenRoomIsShort() {
    var desk = Desk(retryDelays: [15, 60, 300]) {
      $0.limits.maximumRecords = 60
      $0.pushesPerMinute = [.default: [.fcm: 6]]
    }
    desk.answersQuestions = false
    for number in 0..<60 {
      desk.register("f\(number)", .fcm)
      desk.deliver(desk.send(to: .user("f\(number)"), timeToLive: 10))
    }
    desk.advance(.seconds(1))
    #expect(
      desk.held.records == PlatformLane.broadcastPeriod
        && desk.retries.count == 60 - PlatformLane.broadcastPeriod)
  }

  @Test func expiredReadmittedPushesEndThoughOthersKeepComing() throws {
    var desk = Desk(retryDelays: [15, 60, 300]) {
      $0.limits.maximumRecords = 60
      $0.pushesPerMinute = [.default: [.fcm: 6]]
    }
    desk.answersQuestions = false
    for number in 0..<60 { desk.register("f\(number)", .fcm) }
    var (rounds, returned) = ([SendID: Int](), 0)
    for _ in 0..<6 {
      for number in 0..<60 { desk.deliver(desk.send(to: .user("f\(number)"), timeToLive: 10)) }
      let back = desk.retries[returned...].map(\.value)
      returned = desk.retries.count
      for value in back { rounds[try RetryRecord.decode(value[...], recordTime: desk.wall).send.id, default: 0] += 1 }
      desk.deliver(back)
      for _ in 0..<20 { desk.advance(.milliseconds(50)) }
      desk.advance(.seconds(16))
    }
    #expect(rounds.count > 200 && rounds.values.allSatisfy { $0 == 1 })
  }

  @Test(arguments: [nil, 20]) func deferredPagesForStoppedServiceCirculateEverMoreSlowly(rate: Int?)
    throws
  {
    var desk = desk()
    desk.deliver(desk.send(to: .user("a0")))
    desk.answer(desk.pushes[0], PushOutcome(.configurationError, reason: "BadTopic", status: 400))
    var record = Self.page(&desk, devices: 40, rate: rate).encoded(at: desk.wall)
    var (rounds, answered) = (0, 1)
    for second in 0..<3600 {
      if try RetryRecord.decode(record[...], recordTime: desk.wall).notBefore <= desk.wall {
        desk.deliver([record])
        rounds += 1
      }
      // Whatever tries meanwhile is refused.
      desk.answerAll(from: answered, PushOutcome(.configurationError, reason: "BadTopic", status: 400))
      answered = desk.pushes.count
      desk.advance(.seconds(1))
      guard desk.retries.count == rounds, let last = desk.retries.last?.value, last != record else { continue }
      record = last
      let due = try RetryRecord.decode(record[...], recordTime: desk.wall).notBefore
      #expect(due <= desk.wall + .seconds(max(15, second / 2 + 1)))
    }
    #expect((10...60).contains(rounds))
  }

  @Test func pushesBeyondQuotaAreDeferredInOrder() throws {
    var desk = Desk(retryDelays: [2, 15, 60, 300]) { $0.pushesPerMinute = [.default: [.fcm: 600]] }
    desk.answersQuestions = false
    for number in 0..<300 {
      desk.register("f\(number)", .fcm)
      desk.deliver(desk.send(to: .user("f\(number)")))
    }
    desk.advance(.seconds(1))
    // Ten seconds at a tenth of a second each, or a little less.
    #expect((90...100).contains(desk.queued(1)))
    #expect(desk.held.records == desk.queued(1))
    let dues = try desk.retries.map { try RetryRecord.decode($0.value[...], recordTime: desk.wall).notBefore }
    #expect(dues == dues.sorted() && dues.count >= 200)
    #expect(try #require(dues.last) > desk.wall + .seconds(25))
    #expect(try #require(dues.last) < desk.wall + .seconds(35))
  }

  @Test func pageWaitingForQuotaStaysWithSomePushes() {
    var desk = BroadcastTests.desk(devices: 200, retryDelays: [15]) {
      $0.broadcasts.pageDevices = 100
      $0.broadcasts.lookUpPage = 100
      $0.pushesPerMinute = [.default: [.fcm: 6]]
    }
    for number in 0..<30 { desk.register("f\(number)", .fcm) }
    desk.answersQuestions = false
    func answer() {
      for _ in 0..<10 {
        desk.questions.removeAll { if case .quota = $0 { true } else { false } }
        desk.answerQuestions()
      }
    }
    _ = BroadcastTests.divided(&desk)
    answer()
    BroadcastTests.begin(&desk)
    answer()
    let page = desk.queued(1)
    #expect(page > 8)
    desk.advance(.seconds(1))
    #expect(desk.queued(1) == page && desk.retries.isEmpty)
    for number in 0..<30 { desk.deliver(desk.send(to: .user("f\(number)"))) }
    desk.advance(.seconds(1))
    #expect(desk.queued(1) == page + 7 && desk.retries.count == 23)
  }

  @Test(arguments: [1, 50], [400, 780, 1000])
  func registrySlowerThanReservationStarvesNoPush(sends: Int, milliseconds: Int64) {
    var desk = Desk { $0.pushesPerMinute = [.default: [.fcm: 6000]] }
    desk.answersQuestions = false
    for number in 0..<sends {
      desk.register("f\(number)", .fcm)
      desk.deliver(desk.send(to: .user("f\(number)")))
    }
    desk.answersLookUps = false
    // Long enough for all to be looked up once more.
    desk.advance(.milliseconds(300))
    var (askedAt, answered): (Int64?, Int) = (nil, 0)
    for _ in 0..<6000 where desk.statuses.count < sends {
      desk.advance(.milliseconds(17))
      if desk.openLookUp != nil, askedAt == nil { askedAt = desk.uptime }
      if let asked = askedAt, desk.uptime >= asked + milliseconds {
        askedAt = nil
        desk.answerLookUp()
      }
      desk.answerAll(from: answered)
      answered = desk.pushes.count
      // The store of the quotas takes its time, too.
      desk.advance(.milliseconds(3))
      desk.answerQuestions()
    }
    #expect(desk.statuses.count == sends && desk.pushes.count == sends)
    #expect(desk.uptime < 60_000)
  }

  @Test func leavingWorkerDefersDevicesWaitingForQuota() {
    var desk = Desk(retryDelays: [2, 15, 60, 300]) { $0.pushesPerMinute = [.default: [.fcm: 600]] }
    desk.answersQuestions = false
    desk.register("bob", .apns, .fcm)
    desk.deliver(desk.send(to: .user("bob")))
    desk.answerAll()
    #expect(desk.pushes.map(\.handle) == ["bob-0"])
    desk.shutDown()
    #expect(desk.retries.count == 1 && desk.position == 1)
    desk.turn()
    #expect(desk.isToLeave)
  }

  @Test func recheckOutlivingReservationWaitsForAnother() throws {
    var desk = Desk { $0.pushesPerMinute = [.default: [.fcm: 600]] }
    desk.answersQuestions = false
    desk.register("bob", .fcm)
    desk.deliver(desk.send(to: .user("bob")))
    desk.advance(.milliseconds(300))
    desk.answersLookUps = false
    desk.answerQuestions()
    #expect(desk.places[1].checking == 1)
    desk.advance(.milliseconds(800))
    desk.answerLookUp()
    #expect(desk.pushes.isEmpty && desk.takenPlaces == 0)
    desk.answersLookUps = true
    desk.answerQuestions()
    #expect(desk.pushes.count == 1)
    desk.answerAll()
    #expect(desk.statuses.count == 1 && desk.takenPlaces == 0)
  }
}
