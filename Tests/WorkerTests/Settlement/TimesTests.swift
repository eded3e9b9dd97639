import FanfareCore
import RDKafka
import Support
import Testing

@testable import Worker

/// When a send passed through its stages, as its status record tells.
@Suite struct TimesTests {
  private static func send(_ desk: Desk, to audience: Audience) -> SendRequest {
    SendRequest(
      id: .random(), acceptedAt: desk.wall, audience: audience, content: Content(message: Message(body: "hello")))
  }

  private let accepted = PushOutcome(.accepted, status: 200)

  @Test func onlyDeviceHasTheTimesOfItsRecord() throws {
    var desk = Desk()
    desk.register("bob", .fcm)
    desk.answersLookUps = false
    let start = desk.wall
    desk.deliver(Self.send(desk, to: .user("bob")))
    desk.advance(.milliseconds(10))
    desk.answerLookUp()
    desk.advance(.milliseconds(25))
    desk.answerAll(from: 0, accepted)
    let status = try #require(desk.statuses.first)
    #expect(
      status.times
        == SendTimes(
          consumed: start, lookedUp: start + .milliseconds(10), pushed: start + .milliseconds(10),
          answered: start + .milliseconds(35)))
    #expect(status.devices.allSatisfy { $0.pushedAt == nil && $0.answeredAt == nil })
  }

  @Test func eachOfSeveralDevicesHasItsOwnTimes() throws {
    var desk = Desk()
    desk.register("bob", .apns, .fcm)
    let start = desk.wall
    desk.deliver(Self.send(desk, to: .user("bob")))
    desk.advance(.milliseconds(20))
    desk.answer(desk.pushes[0], accepted)
    desk.advance(.milliseconds(300))
    desk.answer(desk.pushes[1], PushOutcome(.rejected, reason: "INVALID_ARGUMENT", status: 400))
    let status = try #require(desk.statuses.first)
    #expect(status.times.pushed == start && status.times.answered == start + .milliseconds(320))
    #expect(status.devices.map(\.pushedAt) == [start, start])
    #expect(status.devices.map(\.answeredAt) == [start + .milliseconds(20), start + .milliseconds(320)])
  }

  @Test func silenceIsNoAnswer() throws {
    var desk = Desk()
    desk.register("bob", .fcm)
    desk.deliver(Self.send(desk, to: .user("bob")))
    while desk.statuses.isEmpty, desk.pushes.count < 50 {
      desk.answerAll(PushOutcome(.unknown, reason: "Timeout"))
      desk.advance(.seconds(30))
    }
    let status = try #require(desk.statuses.first)
    #expect(status.times.pushed != nil && status.times.answered == nil)
  }

  @Test func deferredSendKeepsTheTimesOfItsFirstRound() throws {
    var desk = Desk(retryDelays: [5, 300])
    desk.register("bob", .apns, .fcm)
    let start = desk.wall
    desk.deliver(Self.send(desk, to: .user("bob")))
    desk.advance(.milliseconds(20))
    desk.answer(desk.pushes[1], accepted)
    desk.answer(
      desk.pushes[0], PushOutcome(.retryLater, reason: "TooManyRequests", status: 429, retryAfter: .seconds(250)))
    let retry = try #require(desk.retries.first)
    desk.advance(.seconds(260))
    desk.deliver([retry.value])
    desk.advance(.milliseconds(40))
    desk.answerAll(from: 2, accepted)
    let status = try #require(desk.statuses.first)
    #expect(
      status.times
        == SendTimes(
          consumed: start, lookedUp: start, pushed: start, answered: start + .seconds(260) + .milliseconds(60)))
    #expect(status.devices.map(\.pushedAt) == [start, start])
    #expect(
      status.devices.map(\.answeredAt) == [start + .seconds(260) + .milliseconds(60), start + .milliseconds(20)])
  }

  @Test func sendWithoutDevicesIsConsumedAndLookedUp() throws {
    var desk = Desk()
    desk.deliver(Self.send(desk, to: .user("nobody")))
    #expect(desk.statuses.first?.times == SendTimes(consumed: desk.wall, lookedUp: desk.wall))
  }

  @Test func pageOfABroadcastHasTimesOfItsOwnButNotOfItsDevices() throws {
    var desk = BroadcastTests.desk(devices: 40)
    let start = desk.wall
    _ = BroadcastTests.divided(&desk)
    BroadcastTests.begin(&desk)
    desk.advance(.milliseconds(30))
    BroadcastTests.answerAll(&desk, PushOutcome(.rejected, reason: "INVALID_ARGUMENT", status: 400))
    let status = try #require(desk.statuses.first)
    #expect(status.devices.count > 1)
    #expect(status.devices.allSatisfy { $0.pushedAt == nil && $0.answeredAt == nil })
    #expect(
      status.times
        == SendTimes(consumed: start, lookedUp: start, pushed: start, answered: start + .milliseconds(30)))
  }
}
