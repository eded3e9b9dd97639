import FanfareCore
import Support
import Testing

@testable import Worker

/// A worker without retry topics that receives pages of broadcasts from retry topics configured earlier.
struct NoRetryTopicsTests {
  private static let accepted = PushOutcome(.accepted, status: 200)

  /// A desk with a deferred page of a broadcast that the caller steers.
  private func desk(
    devices: Int, rate: Int? = nil, timeToLive: Int? = nil, _ course: BroadcastControl.State
  ) -> (Desk, BroadcastID) {
    var desk = Desk()
    let record = StoppedRoomTests.page(&desk, devices: devices, rate: rate, timeToLive: timeToLive)
    let broadcast = BroadcastID(hub: record.send.hub, send: record.send.identity)
    desk.broadcasts.steerings[broadcast] = BroadcastControl(course, because: .caller)
    desk.deliver([record.encoded(at: desk.wall)])
    return (desk, broadcast)
  }

  private func steer(_ course: BroadcastControl.State, _ broadcast: BroadcastID, _ desk: inout Desk) {
    desk.broadcasts.steerings[broadcast] = BroadcastControl(course, because: .caller)
  }

  @Test func pageOfPausedBroadcastIsPushedOnlyAfterResume() {
    var (desk, broadcast) = desk(devices: 40, .paused)
    for _ in 0..<60 { desk.advance(.seconds(1)) }
    #expect(desk.pushes.isEmpty && desk.retries.isEmpty && desk.position == nil)
    steer(.running, broadcast, &desk)
    for _ in 0..<20 { desk.advance(.seconds(1)) }
    #expect(desk.pushes.count == 40)
    desk.answerAll(Self.accepted)
    #expect(desk.statuses.map(\.devices.count) == [40] && desk.position == 1 && desk.dispatcher.items.held.records == 0)
  }

  @Test func pageOfPausedBroadcastIsAskedAboutSeldom() {
    var (desk, _) = desk(devices: 40, .paused)
    desk.answersQuestions = false
    var asked = 0
    for _ in 0..<120 {
      desk.advance(.milliseconds(500))
      asked += desk.questions.count
      desk.answerQuestions()
    }
    #expect((4...12).contains(asked))
  }

  @Test func pageOfPausedBroadcastIsNotPushedWhenCancelled() {
    var (desk, broadcast) = desk(devices: 40, .paused)
    desk.advance(.seconds(1))
    steer(.cancelled, broadcast, &desk)
    for _ in 0..<20 { desk.advance(.seconds(1)) }
    #expect(desk.pushes.isEmpty && desk.statuses.map(\.state) == [.cancelled])
    #expect(desk.position == 1 && desk.dispatcher.items.held.records == 0)
  }

  @Test func pageOfPausedBroadcastExpires() {
    var (desk, _) = desk(devices: 40, timeToLive: 30, .paused)
    for _ in 0..<40 { desk.advance(.seconds(1)) }
    #expect(desk.pushes.isEmpty && desk.statuses.map(\.state) == [.expired] && desk.position == 1)
  }

  @Test func pageOfRatedBroadcastKeepsItsRate() {
    var (desk, _) = desk(devices: 200, rate: 20, .running)
    for step in 0..<600 {
      BroadcastTests.answerAll(&desk)
      #expect(desk.pushes.count <= 21 + step)
      desk.advance(.milliseconds(50))
    }
    #expect(desk.pushes.count == 200 && Set(desk.pushes.map(\.handle)).count == 200)
    #expect(
      desk.statuses.map(\.devices.count) == [200] && desk.position == 1 && desk.dispatcher.items.held.records == 0)
  }

  @Test func pagesOfRatedBroadcastShareItsRate() {
    var desk = Desk()
    var other = StoppedRoomTests.page(&desk, number: 1, devices: 100, rate: 20)
    let record = StoppedRoomTests.page(&desk, devices: 100, rate: 20)
    other = RetryRecord(
      send: record.send, part: 1, parts: other.parts, attempt: record.attempt, deferrals: 1, devices: other.devices)
    desk.deliver([record.encoded(at: desk.wall), other.encoded(at: desk.wall)])
    for step in 0..<600 {
      BroadcastTests.answerAll(&desk)
      #expect(desk.pushes.count <= 21 + step)
      desk.advance(.milliseconds(50))
    }
    #expect(desk.pushes.count == 200 && Set(desk.pushes.map(\.handle)).count == 200)
    #expect(desk.statuses.count == 2 && desk.position == 2 && desk.dispatcher.readmissions.weights[0] == 0)
  }

  @Test func pageOfRatedBroadcastStopsWhenPaused() {
    var (desk, broadcast) = desk(devices: 200, rate: 20, .running)
    desk.advance(.milliseconds(500))
    steer(.paused, broadcast, &desk)
    for _ in 0..<60 {
      BroadcastTests.answerAll(&desk)
      desk.advance(.milliseconds(500))
    }
    #expect((10...40).contains(desk.pushes.count) && desk.statuses.isEmpty)
    steer(.running, broadcast, &desk)
    for _ in 0..<600 {
      BroadcastTests.answerAll(&desk)
      desk.advance(.milliseconds(50))
    }
    #expect(desk.pushes.count == 200 && desk.statuses.map(\.devices.count) == [200] && desk.position == 1)
  }

  @Test func stoppedServiceDelaysRatedPageWithoutLosingIt() {
    var desk = Desk { $0.times.probeInterval = .seconds(2) }
    desk.register("bob", .apns)
    desk.deliver(desk.send(to: .user("bob")))
    desk.answer(desk.pushes[0], PushOutcome(.configurationError, reason: "BadTopic", status: 400))
    desk.deliver([StoppedRoomTests.page(&desk, devices: 40, rate: 20).encoded(at: desk.wall)])
    desk.advance(.seconds(1))
    #expect(desk.pushes.count == 1)
    for _ in 0..<600 {
      BroadcastTests.answerAll(&desk)
      desk.advance(.milliseconds(50))
    }
    #expect(desk.statuses.count == 2 && desk.position == 2 && desk.dispatcher.items.held.records == 0)
  }

  @Test func pageWaitingForItsRateIsLeftToTheNextOwner() {
    var (desk, _) = desk(devices: 200, rate: 20, .running)
    desk.advance(.milliseconds(1500))
    BroadcastTests.answerAll(&desk)
    desk.turn { desk, _ in desk.dispatcher.shutDown(at: desk.now) }
    for _ in 0..<100 {
      BroadcastTests.answerAll(&desk)
      desk.advance(.milliseconds(50))
    }
    #expect(desk.isToLeave && desk.position == nil && desk.statuses.isEmpty)
  }
}
