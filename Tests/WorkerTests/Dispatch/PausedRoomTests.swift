import FanfareCore
import RDKafka
import Support
import Testing

@testable import Worker

/// Paused broadcasts leave room to everything else, and follow their controls.
struct PausedRoomTests {
  private func setControl(_ state: BroadcastControl.State, _ broadcast: BroadcastID, _ desk: inout Desk) {
    desk.broadcasts.controls[broadcast] = BroadcastControl(state, because: .caller)
    desk.advance(.milliseconds(600))
    desk.advance(.milliseconds(10))
  }

  /// A broadcast to 200 devices with three pushes under way.
  private func begun(
    _ configure: (inout WorkerConfiguration) -> Void = { _ in }
  ) throws -> (desk: Desk, send: SendRequest, broadcast: BroadcastID) {
    var desk = BroadcastTests.desk(devices: 200, retryDelays: [2, 15]) {
      $0.limits.maximumPushes = 3
      $0.broadcasts.lookUpPage = 4
      configure(&$0)
    }
    let send = BroadcastTests.divided(&desk)
    BroadcastTests.begin(&desk)
    #expect(desk.pushes.count == 3)
    return (desk, send, try #require(desk.broadcasts.plans.keys.first))
  }

  @Test(arguments: [4, 100]) func pausedPageDoesNotBlockLookUpOfSends(
    lookUpPage: Int
  ) throws {
    var (desk, send, broadcast) = try begun {
      $0.limits.maximumRecords = 4
      $0.limits.maximumDevices = 8
      $0.broadcasts.lookUpPage = lookUpPage
    }
    setControl(.paused, broadcast, &desk)
    BroadcastTests.answerAll(&desk)
    desk.advance(.seconds(1))
    #expect(desk.pushes.count == 3 && desk.held.devices == 0 && desk.retries.count == 1)
    let value = try #require(desk.retries.first).value
    let record = try RetryRecord.decode(value[...], recordTime: desk.wall)
    #expect(record.counts.total == 3 && record.send == send && record.devices.count >= 1)
    desk.register("bob", .fcm)
    let before = desk.credit
    for _ in 0..<4 { desk.deliver(desk.send(to: .user("bob"))) }
    BroadcastTests.answerAll(&desk)
    #expect(desk.pushes.count == 7 && desk.credit > before)
    // All of the broadcast comes, once.
    setControl(.running, broadcast, &desk)
    desk.advance(.seconds(3))
    desk.deliver([value])
    BroadcastTests.answerAll(&desk)
    #expect(desk.pushes.count == 204 && Set(desk.pushes.map(\.handle)).count == 201)
    #expect(Set(desk.statuses.filter { $0.send == send.id }.map(\.part)).count == send.pages(in: desk))
    #expect(
      desk.held.records == 0 && desk.held.devices == 0
        && desk.held.segments == 0)
  }

  @Test func leavingPageResumedContinuesWithUndeferredDevices() throws {
    var (desk, send, broadcast) = try begun { $0.limits.maximumDevices = 8 }
    setControl(.paused, broadcast, &desk)
    #expect(desk.retries.isEmpty, "three pushes are not answered")
    setControl(.running, broadcast, &desk)
    BroadcastTests.answerAll(&desk)
    #expect(desk.retries.count == 1)
    desk.advance(.seconds(3))
    desk.deliver([try #require(desk.retries.first).value])
    BroadcastTests.answerAll(&desk)
    #expect(desk.pushes.count == 200 && Set(desk.pushes.map(\.handle)).count == 200)
    #expect(Set(desk.statuses.map(\.part)).count == send.pages(in: desk))
  }

  @Test func fewPausedPagesStayInMemory() throws {
    var (desk, _, broadcast) = try begun()
    setControl(.paused, broadcast, &desk)
    BroadcastTests.answerAll(&desk)
    desk.advance(.seconds(60))
    #expect(desk.retries.isEmpty && desk.held.devices > 0)
  }

  @Test func readmittedRecordOfPausedBroadcastCirculatesEverMoreSlowly() throws {
    var desk = Desk(retryDelays: [2, 15, 60, 300])
    let page = StoppedRoomTests.page(&desk, devices: 3)
    let broadcast = BroadcastID(hub: page.send.hub, send: page.send.identity)
    desk.broadcasts.controls[broadcast] = BroadcastControl(.paused, because: .caller)
    var record = page.encoded(at: desk.wall)
    for second in 0..<3600 {
      if try RetryRecord.decode(record[...], recordTime: desk.wall).notBefore <= desk.wall {
        desk.deliver([record])
        record = try #require(desk.retries.last).value
        let due = try RetryRecord.decode(record[...], recordTime: desk.wall).notBefore
        // Not later than by half of the pause, should that end now.
        #expect(due <= desk.wall + .seconds(max(2, second / 2 + 1)))
      }
      desk.advance(.seconds(1))
    }
    #expect((10...60).contains(desk.retries.count) && desk.pushes.isEmpty && desk.knownPauses == 1)
    desk.broadcasts.controls[broadcast] = BroadcastControl(.running, because: .caller)
    desk.advance(.seconds(301))
    desk.deliver([record])
    #expect(desk.pushes.count == 3 && desk.knownPauses == 0)
  }

  @Test func pauseBeginsAgainWhenNothingCameBackInTime() throws {
    var desk = Desk(retryDelays: [2, 15, 60, 300])
    let page = StoppedRoomTests.page(&desk, devices: 3)
    desk.broadcasts.controls[BroadcastID(hub: page.send.hub, send: page.send.identity)] = BroadcastControl(
      .paused, because: .caller)
    var record = page.encoded(at: desk.wall)
    func due() throws -> UnixTime { try RetryRecord.decode(record[...], recordTime: desk.wall).notBefore }
    for _ in 0..<1000 {
      if try due() <= desk.wall {
        desk.deliver([record])
        record = try #require(desk.retries.last).value
      }
      desk.advance(.seconds(1))
    }
    desk.advance(.milliseconds(max(0, (try due() - desk.wall).milliseconds) + 20_000))
    desk.deliver([record])
    record = try #require(desk.retries.last).value
    #expect(try due() == desk.wall + .seconds(2))
  }

  @Test func pauseIsForgottenWhenBroadcastRuns() throws {
    var (desk, _, broadcast) = try begun { $0.limits.maximumDevices = 8 }
    setControl(.paused, broadcast, &desk)
    BroadcastTests.answerAll(&desk)
    desk.advance(.seconds(1))
    #expect(desk.retries.count == 1 && desk.knownPauses == 1)
    setControl(.running, broadcast, &desk)
    #expect(desk.knownPauses == 0)
  }

  @Test func lostPausedSegmentsAreForgotten() throws {
    var (desk, _, broadcast) = try begun()
    setControl(.paused, broadcast, &desk)
    #expect(!desk.dispatcher.broadcasts.pausedSegments.isEmpty)
    desk.lose([BroadcastTests.partition])
    desk.advance(.seconds(1))
    desk.advance(.seconds(1))
    #expect(
      desk.dispatcher.broadcasts.pausedSegments.isEmpty && desk.dispatcher.broadcasts.segments.isEmpty
        && desk.dispatcher.broadcasts.controls.isEmpty)
  }

  @Test(arguments: [
    PushOutcome(.reauthenticate, status: 403), PushOutcome(.configurationError, reason: "BadTopic", status: 400),
  ])
  func repeatedPushOfPausedPageWaitsForResume(outcome: PushOutcome) throws {
    var (desk, send, broadcast) = try begun {
      $0.times.probeInterval = .seconds(1)
      $0.times.ownershipWindow = .seconds(3600)
    }
    setControl(.paused, broadcast, &desk)
    for push in desk.pushes { desk.answer(push, outcome) }
    for _ in 0..<5 { desk.advance(.seconds(1)) }
    #expect(desk.pushes.count == 3 && desk.dispatcher.lanes.allSatisfy { $0.queued.isEmpty })
    setControl(.running, broadcast, &desk)
    var returned = 0
    for _ in 0..<5 {
      BroadcastTests.answerAll(&desk)
      desk.advance(.seconds(3))
      // Pushes that the stopped service does not have are deferred first.
      let back = desk.retries[returned...].map(\.value)
      returned = desk.retries.count
      desk.deliver(back)
      BroadcastTests.answerAll(&desk)
    }
    #expect(desk.pushes.count == 203 && Set(desk.pushes.map(\.handle)).count == 200)
    #expect(Set(desk.statuses.map(\.part)).count == send.pages(in: desk))
  }

  @Test func deviceLeavesWithItsUser() throws {
    var (desk, _, broadcast) = try begun {
      $0.limits.maximumDevices = 8
      $0.times.ownershipWindow = .seconds(3600)
    }
    setControl(.paused, broadcast, &desk)
    for push in desk.pushes { desk.answer(push, PushOutcome(.reauthenticate, status: 403)) }
    desk.advance(.seconds(1))
    #expect(desk.pushes.count == 3 && desk.retries.count == 1 && desk.held.devices == 0)
  }

  @Test(arguments: [BroadcastControl.State.paused, .cancelled])
  func deviceInLookUpIsNotPushedWhenBroadcastIsPaused(
    control: BroadcastControl.State
  )
    throws
  {
    var (desk, send, broadcast) = try begun()
    setControl(.paused, broadcast, &desk)
    desk.answersLookUps = false
    setControl(.running, broadcast, &desk)
    for push in desk.pushes { desk.answer(push, PushOutcome(.accepted, status: 200)) }
    #expect(desk.places.reduce(0) { $0 + $1.checking } > 0)
    setControl(control, broadcast, &desk)
    while desk.openLookUp != nil { desk.answerLookUp() }
    desk.advance(.seconds(1))
    #expect(desk.pushes.count == 3 && desk.takenPlaces == 0)
    desk.answersLookUps = true
    setControl(control == .paused ? .running : .cancelled, broadcast, &desk)
    BroadcastTests.answerAll(&desk)
    let count = control == .paused ? 200 : 3
    #expect(desk.pushes.count == count && Set(desk.pushes.map(\.handle)).count == count)
    #expect(Set(desk.statuses.map(\.part)).count == send.pages(in: desk) && desk.held.segments == 0)
  }

  @Test func pausedSegmentsDoNotBlockSends() throws {
    var desk = BroadcastTests.desk(devices: 200) {
      $0.limits.maximumSpan = 4
      $0.limits.maximumRecords = 4
    }
    let paused = BroadcastTests.divided(&desk)
    let broadcast = BroadcastID(hub: paused.hub, send: paused.identity)
    desk.broadcasts.controls[broadcast] = BroadcastControl(.paused, because: .caller)
    BroadcastTests.begin(&desk)
    desk.segments = []
    _ = BroadcastTests.divided(&desk)
    BroadcastTests.begin(&desk)
    BroadcastTests.answerAll(&desk)
    #expect(desk.pushes.count == 200 && desk.held.segments == 3)
    #expect(
      desk.dispatcher.broadcasts.segments.isEmpty && desk.dispatcher.broadcasts.pausedSegments.count == 3,
      "looked at when it is news")
    desk.advance(.seconds(1))
    #expect(!desk.isFarBehind && desk.pausesSegments)
    let before = desk.credit
    for _ in 0..<4 { desk.deliver(desk.send(to: .user("unregistered"))) }
    #expect(desk.credit > before)
    setControl(.running, broadcast, &desk)
    BroadcastTests.answerAll(&desk)
    desk.advance(.seconds(1))
    #expect(desk.pushes.count == 400 && !desk.pausesSegments)
  }
}
