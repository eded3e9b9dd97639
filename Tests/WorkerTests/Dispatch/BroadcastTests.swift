import FanfareCore
import RDKafka
import Support
import Testing

@testable import Worker

/// Sends to audiences of any size: looked at, divided, and gone through page by page.
@Suite struct BroadcastTests {
  /// Where the segments come from.
  static let partition = TopicPartition(topic: "fanfare.segments", partition: 0)

  /// A desk whose tag `news` reaches that number of devices: all are iPhones but every fourth.
  static func desk(
    devices: Int, retryDelays: [Int] = Desk.distant, seed: UInt64 = 7, isTracing: Bool = false,
    configure: (inout WorkerConfiguration) -> Void = { _ in }
  ) -> Desk {
    var generator = SeededGenerator(seed: seed)
    var desk = Desk(retryDelays: retryDelays, isTracing: isTracing) {
      $0.broadcasts.undividedDevices = 20
      $0.broadcasts.pageDevices = 10
      $0.broadcasts.lookUpPage = 4
      $0.broadcasts.segments = 3
      $0.broadcasts.broadcastFailureSample = 1000
      configure(&$0)
    }
    desk.registry[.tag("news")] = (0..<devices).map { number in
      Target(
        registration: .random(using: &generator), platform: number % 4 == 3 ? .fcm : .apns, handle: "h\(number)",
        registeredAt: UnixTime(milliseconds: 0))
    }
    for target in desk.registry[.tag("news")] ?? [] { desk.registry[.registration(target.registration)] = [target] }
    desk.assign([partition])
    return desk
  }

  /// Posts a send to `news`, and delivers its segments.
  static func divided(_ desk: inout Desk, rate: Int? = nil, timeToLive: Int? = nil) -> SendRequest {
    let send = SendRequest(
      id: .random(), sender: "tester", acceptedAt: desk.wall, audience: .tag("news"),
      content: Content(message: Message(body: "hello")), timeToLive: timeToLive, maximumPerSecond: rate)
    desk.deliver(send)
    return send
  }

  /// Lets the segments that were written come.
  static func begin(_ desk: inout Desk) {
    let values = desk.segments.map { $0.encoded(at: desk.wall) }
    desk.deliver(values, from: partition)
  }

  /// Answers all pushes as they come until none comes any more.
  static func answerAll(_ desk: inout Desk, _ outcome: PushOutcome = PushOutcome(.accepted, status: 200)) {
    var answered = 0
    while answered < desk.pushes.count {
      let push = desk.pushes[answered]
      answered += 1
      if desk.device(of: push)?.phase == .inFlight { desk.answer(push, outcome) }
    }
  }

  @Test func smallAudienceIsDispatchedInOnePiece() {
    var desk = Self.desk(devices: 20)
    _ = Self.divided(&desk)
    #expect(desk.segments.isEmpty && desk.pushes.count == 20)
    desk.answerAll()
    #expect(desk.statuses.map(\.parts) == [1] && desk.statuses[0].devices.count == 20)
    #expect(desk.position == 1)
  }

  @Test(arguments: [BroadcastControl.State.paused, .cancelled])
  func aSmallAudienceIsHeldBackBeforeItIsBegun(control: BroadcastControl.State) throws {
    var desk = Self.desk(devices: 20)
    desk.answersQuestions = false
    let send = Self.divided(&desk)
    let broadcast = BroadcastID(hub: send.hub, send: send.identity)
    desk.broadcasts.controls[broadcast] = BroadcastControl(control, because: .caller)
    desk.answersQuestions = true
    desk.answerQuestions()
    Self.begin(&desk)
    #expect(desk.pushes.isEmpty)
    guard control == .paused else {
      #expect(
        desk.statuses.map(\.state) == Array(repeating: .cancelled, count: desk.statuses.count) && !desk.statuses.isEmpty
      )
      return
    }
    #expect(desk.statuses.isEmpty)
    desk.broadcasts.controls[broadcast] = BroadcastControl(.running, because: .caller)
    desk.advance(.seconds(1))
    Self.answerAll(&desk)
    #expect(desk.pushes.count == 20)
  }

  @Test func largeAudienceIsDividedOnce() throws {
    var desk = Self.desk(devices: 200)
    desk.answersQuestions = false
    let send = Self.divided(&desk)
    #expect(desk.pushes.isEmpty && desk.segments.isEmpty)
    desk.answersQuestions = true
    desk.answerQuestions()
    let pages = try #require(desk.broadcasts.plans.values.first)
    // Two hundred devices, eight a page, told from the first twenty.
    #expect((10...40).contains(pages))
    #expect(desk.segments.map(\.range.count).reduce(0, +) == pages && desk.segments.count == 3)
    #expect(desk.segments.allSatisfy { $0.send == send && $0.pages == pages })
    #expect(desk.broadcasts.announced.count == 1 && desk.position == 1)
    // A redelivery to another worker finds the plan.
    var other = Self.desk(devices: 200)
    other.broadcasts = desk.broadcasts
    other.deliver(send)
    #expect(other.segments.isEmpty && other.position == 1 && other.statuses.isEmpty)
  }

  @Test func everyDeviceGetsItOnceAndEveryPageIsAccountedFor() {
    var desk = Self.desk(devices: 200)
    let send = Self.divided(&desk)
    Self.begin(&desk)
    Self.answerAll(&desk)
    #expect(Set(desk.pushes.map(\.handle)).count == 200 && desk.pushes.count == 200)
    let pages = desk.segments[0].pages
    #expect(desk.statuses.map(\.part).sorted() == Array(0..<pages))
    #expect(
      desk.statuses.allSatisfy {
        $0.send == send.id && $0.parts == pages && $0.attempt == SegmentRecord.attempt(of: send)
      })
    var counts = OutcomeCounts()
    for status in desk.statuses { counts.add(status.counts) }
    #expect(counts[.apns, .delivered] == 150 && counts[.fcm, .delivered] == 50)
    #expect(desk.broadcasts.finished.values.first?.count == pages)
    #expect(desk.group[Self.partition]?.offset == 3)
    #expect(
      desk.held.records == 0 && desk.held.devices == 0
        && desk.takenPlaces == 0)
  }

  @Test func nextPageHasOnlyItsHeadStartBeforeTheLastIsNotedAsFinished() {
    var desk = Self.desk(devices: 200)
    _ = Self.divided(&desk)
    Self.begin(&desk)
    desk.answersQuestions = false
    for _ in 0..<20 {
      Self.answerAll(&desk)
      // All but the word that the page is finished.
      let (kept, answered) = (desk.questions.filter(\.isFinish), desk.questions.filter { !$0.isFinish })
      desk.questions = answered
      desk.answerQuestions()
      desk.questions += kept
    }
    #expect(desk.statuses.count == 1)
    #expect(desk.pushes.count == desk.statuses[0].counts.total + Self.headStart(behind: desk.statuses[0].counts.total))
    desk.answersQuestions = true
    desk.answerQuestions()
    Self.answerAll(&desk)
    #expect(desk.pushes.count == 200)
  }

  @Test func finishedPageIsNotBegunAgain() throws {
    var desk = Self.desk(devices: 200)
    _ = Self.divided(&desk)
    let broadcast = try #require(desk.broadcasts.plans.keys.first)
    let pages = desk.segments[0].pages
    desk.broadcasts.finished[broadcast] = Set(0..<pages - 1)
    Self.begin(&desk)
    Self.answerAll(&desk)
    #expect(desk.statuses.map(\.part) == [pages - 1])
    #expect(desk.group[Self.partition]?.offset == 3)
  }

  @Test func resumedBroadcastGoesOnWhereItWasPaused() throws {
    var desk = Self.desk(devices: 200) { $0.limits.maximumPushes = 3 }
    _ = Self.divided(&desk)
    let broadcast = try #require(desk.broadcasts.plans.keys.first)
    Self.begin(&desk)
    #expect(desk.pushes.count == 3)
    desk.broadcasts.controls[broadcast] = BroadcastControl(.paused, because: .caller)
    desk.advance(.milliseconds(500))
    Self.answerAll(&desk)
    #expect(desk.pushes.count == 3)
    desk.broadcasts.controls[broadcast] = BroadcastControl(.running, because: .caller)
    desk.advance(.seconds(60))
    Self.answerAll(&desk)
    #expect(desk.pushes.count == 200 && Set(desk.pushes.map(\.handle)).count == 200)
    #expect(desk.group[Self.partition]?.offset == 3)
  }

  @Test func pausedBroadcastDoesNotDelayAnother() throws {
    var desk = Self.desk(devices: 200)
    _ = Self.divided(&desk)
    let broadcast = try #require(desk.broadcasts.plans.keys.first)
    desk.broadcasts.controls[broadcast] = BroadcastControl(.paused, because: .caller)
    Self.begin(&desk)
    #expect(desk.pushes.isEmpty)
    desk.segments = []
    let other = Self.divided(&desk)
    Self.begin(&desk)
    Self.answerAll(&desk)
    #expect(desk.pushes.count == 200 && desk.statuses.allSatisfy { $0.send == other.id })
  }

  @Test func pageThatIsPausedWhilePushedDoesNotDelayAnotherBroadcast() throws {
    var desk = Self.desk(devices: 200) {
      $0.limits.maximumPushes = 3
      $0.broadcasts.lookUpPage = 100
    }
    let first = Self.divided(&desk)
    let broadcast = try #require(desk.broadcasts.plans.keys.first)
    Self.begin(&desk)
    // All devices of the first page have been taken, and most of them wait.
    #expect(desk.pushes.count == 3)
    desk.broadcasts.controls[broadcast] = BroadcastControl(.paused, because: .caller)
    desk.advance(.milliseconds(500))
    desk.segments = []
    let other = Self.divided(&desk)
    Self.begin(&desk)
    Self.answerAll(&desk)
    #expect(desk.pushes.count == 203)
    #expect(
      desk.statuses.allSatisfy { $0.send == other.id } && Set(desk.statuses.map(\.part)).count == other.pages(in: desk))
    desk.broadcasts.controls[broadcast] = BroadcastControl(.running, because: .caller)
    desk.advance(.seconds(1))
    Self.answerAll(&desk)
    #expect(
      desk.pushes.count == 400
        && Set(desk.statuses.filter { $0.send == first.id }.map(\.part)).count == first.pages(in: desk))
  }

  @Test func resumedPageLooksUpItsDevicesAgain() throws {
    var desk = Self.desk(devices: 200) {
      $0.limits.maximumPushes = 3
      $0.broadcasts.lookUpPage = 100
    }
    _ = Self.divided(&desk)
    let broadcast = try #require(desk.broadcasts.plans.keys.first)
    Self.begin(&desk)
    desk.broadcasts.controls[broadcast] = BroadcastControl(.paused, because: .caller)
    desk.advance(.milliseconds(500))
    Self.answerAll(&desk)
    let pushed = Set(desk.pushes.map(\.handle))
    // Everybody but those logs out meanwhile.
    for target in desk.registry[.tag("news")] ?? [] where !pushed.contains(target.handle) {
      desk.registry[.registration(target.registration)] = []
    }
    desk.registry[.tag("news")] = []
    desk.broadcasts.controls[broadcast] = BroadcastControl(.running, because: .caller)
    desk.advance(.seconds(3600))
    Self.answerAll(&desk)
    #expect(desk.pushes.count == 3)
    #expect(desk.group[Self.partition]?.offset == 3)
  }

  @Test func broadcastThatExpiresWhilePausedEnds() throws {
    var desk = Self.desk(devices: 200) {
      $0.limits.maximumPushes = 3
      $0.broadcasts.lookUpPage = 100
    }
    _ = Self.divided(&desk, timeToLive: 60)
    let broadcast = try #require(desk.broadcasts.plans.keys.first)
    Self.begin(&desk)
    desk.broadcasts.controls[broadcast] = BroadcastControl(.paused, because: .caller)
    desk.advance(.milliseconds(500))
    Self.answerAll(&desk)
    desk.advance(.seconds(61))
    desk.advance(.seconds(1))
    #expect(desk.pushes.count == 3 && desk.group[Self.partition]?.offset == 3)
    #expect(Set(desk.statuses.map(\.part)).count == desk.segments[0].pages)
  }

  @Test func slowRegistryIsNotAskedForEver() {
    var desk = Self.desk(devices: 200)
    _ = Self.divided(&desk)
    desk.answersQuestions = false
    Self.begin(&desk)
    for _ in 0..<400 where desk.pushes.count < 200 {
      desk.advance(.seconds(3))
      desk.answerQuestions()
      Self.answerAll(&desk)
    }
    #expect(desk.pushes.count == 200 && Set(desk.pushes.map(\.handle)).count == 200)
  }

  @Test func smallAudienceKeepsItsRate() {
    var desk = Self.desk(devices: 20)
    _ = Self.divided(&desk, rate: 10)
    #expect(desk.pushes.isEmpty && !desk.segments.isEmpty)
  }

  @Test func cancelledBroadcastReportsDevicesItHasReached() throws {
    var desk = Self.desk(devices: 200) { $0.limits.maximumPushes = 3 }
    _ = Self.divided(&desk)
    let broadcast = try #require(desk.broadcasts.plans.keys.first)
    Self.begin(&desk)
    desk.broadcasts.controls[broadcast] = BroadcastControl(.cancelled, because: .caller)
    desk.advance(.milliseconds(500))
    Self.answerAll(&desk)
    #expect(desk.pushes.count == 3)
    #expect(desk.statuses.count == desk.segments[0].pages && desk.statuses.allSatisfy { $0.state == .cancelled })
    #expect(desk.statuses.reduce(0) { $0 + $1.counts.total + $1.devices.count } == 3)
    #expect(
      desk.group[Self.partition]?.offset == 3 && desk.held.records == 0
        && desk.held.devices == 0)
  }

  @Test func expiredBroadcastIsNotBegun() {
    var desk = Self.desk(devices: 200)
    _ = Self.divided(&desk, timeToLive: 60)
    desk.advance(.seconds(61))
    Self.begin(&desk)
    #expect(desk.pushes.isEmpty && desk.statuses.allSatisfy { $0.state == .expired })
    #expect(desk.statuses.count == desk.segments[0].pages)
  }

  @Test func broadcastKeepsItsRate() {
    var desk = Self.desk(devices: 200)
    _ = Self.divided(&desk, rate: 40)
    Self.begin(&desk)
    for second in 1...10 {
      for _ in 0..<20 {
        Self.answerAll(&desk)
        desk.advance(.milliseconds(50))
      }
      #expect(desk.pushes.count <= 40 * second + 10)
    }
    #expect(desk.pushes.count == 200)
  }

  @Test func deviceThatMustWaitDoesNotDelayTheBroadcast() throws {
    var desk = Self.desk(devices: 200, retryDelays: [15])
    let send = Self.divided(&desk)
    Self.begin(&desk)
    desk.answer(
      desk.pushes[0], PushOutcome(.retryLater, reason: "TooManyRequests", status: 429, retryAfter: .seconds(20)))
    Self.answerAll(&desk)
    #expect(desk.pushes.count == 200 && desk.retries.count == 1)
    #expect(desk.statuses.count == desk.segments[0].pages - 1)
    #expect(desk.group[Self.partition]?.offset == 3)
    let retry = try RetryRecord.decode(desk.retries[0].value[...], recordTime: desk.wall)
    #expect(retry.devices.count == 1 && retry.counts[.delivered] > 0)
    // The status of the readmitted record reports the whole page.
    desk.registry[.registration(desk.target(of: desk.pushes[0]).registration)] = [desk.target(of: desk.pushes[0])]
    desk.advance(.seconds(30))
    desk.deliver([desk.retries[0].value])
    Self.answerAll(&desk)
    let last = try #require(desk.statuses.last)
    #expect((last.part, last.parts, last.send) == (retry.part, retry.parts, send.id))
    #expect(last.counts.total + last.devices.count == retry.counts.total + 1)
    #expect(Set(desk.statuses.map(\.part)).count == desk.segments[0].pages)
  }

  @Test func nextOwnerOfSegmentsPushesRemainingPages() throws {
    var desk = Self.desk(devices: 200)
    _ = Self.divided(&desk)
    Self.begin(&desk)
    // Some pages are finished, one is begun, and then the partition is gone.
    for push in desk.pushes { desk.answer(push, PushOutcome(.accepted, status: 200)) }
    let begun = desk.pushes.count
    desk.lose([Self.partition])
    #expect(desk.held.records == 0)
    var other = Self.desk(devices: 200)
    other.broadcasts = desk.broadcasts
    other.segments = desk.segments
    Self.begin(&other)
    Self.answerAll(&other)
    let finished = desk.statuses.reduce(0) { $0 + $1.counts.total }
    #expect(other.pushes.count == 200 - finished)
    #expect(begun - finished <= desk.configuration.broadcasts.pageDevices)
    #expect(Set((desk.statuses + other.statuses).map(\.part)).count == desk.segments[0].pages)
  }
}

extension BroadcastQuestion {
  /// Whether it is the word that pages are finished.
  fileprivate var isFinish: Bool { if case .finish = self { true } else { false } }
}

extension SendRequest {
  /// How many pages the send is divided into.
  func pages(in desk: Desk) -> Int? { desk.broadcasts.plans[BroadcastID(hub: hub, send: identity)] }
}

extension Desk {
  /// The device of `news` that a push went to.
  fileprivate func target(of push: Push) -> Target {
    // Every push of these tests goes to one of them.
    registry[.tag("news")]!.first { $0.handle == push.handle }!
  }
}
