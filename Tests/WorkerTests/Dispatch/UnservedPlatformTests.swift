import FanfareCore
import RDKafka
import Support
import Testing

@testable import Worker

/// Devices of a platform for which the worker has no sender.
struct UnservedPlatformTests {
  private func desk() -> Desk {
    var desk = Desk(retryDelays: [15, 60, 300])
    desk.register("bob", .wns, .fcm)
    desk.register("eve", .wns)
    return desk
  }

  @Test func sendIsDeferredUntilItExpires() throws {
    var desk = desk()
    desk.deliver(desk.send(to: .user("bob"), timeToLive: 100), desk.send(to: .user("eve"), timeToLive: 100))
    desk.answerAll()
    #expect(desk.statuses.isEmpty)
    #expect(desk.retries.count == 2 && desk.position == 2)
    #expect(desk.alarms.count { if case .senderMissing = $0 { true } else { false } } == 1)
    #expect(desk.readinessProblems.count == 1)
    // It comes back, is deferred again, and ends when its time to live is over.
    desk.advance(.seconds(60))
    desk.deliver(desk.retries.map(\.value))
    #expect(desk.retries.count == 4 && desk.statuses.isEmpty)
    desk.advance(.seconds(40))
    desk.deliver(desk.retries[2...].map(\.value))
    let results = desk.statuses.flatMap(\.devices)
    #expect(results.filter { $0.platform == .wns }.map(\.outcome) == [.expired, .expired])
    #expect(results.filter { $0.platform == .wns }.allSatisfy { $0.reason == "NoSender" && $0.attempts == 0 })
    #expect(results.filter { $0.platform == .fcm }.map(\.outcome) == [.delivered])
    #expect(desk.pushes.count == 1)
    // Without further devices the worker is ready again.
    desk.advance(.seconds(601))
    #expect(desk.readinessProblems.isEmpty)
  }

  @Test func workerWithSenderDeliversDeferredSend() {
    var lacking = desk()
    lacking.deliver(lacking.send(to: .user("eve")))
    var serving = Desk(senders: [.default: [.wns: ScriptedSender(.wns)]], retryDelays: [15, 60, 300])
    serving.register("eve", .wns)
    serving.wall = lacking.wall + .seconds(60)
    serving.deliver(lacking.retries.map(\.value))
    #expect(serving.pushes.map(\.handle) == ["eve-0"])
    serving.answerAll()
    #expect(serving.statuses.flatMap(\.devices).map(\.outcome) == [.delivered])
  }

  @Test func hubWithoutCredentialsIsDeferred() throws {
    let hub = try #require(HubName("other"))
    var desk = Desk(
      senders: [.default: [.fcm: ScriptedSender(.fcm)], hub: [:]], retryDelays: [15, 60, 300])
    desk.register("bob", .fcm)
    desk.deliver(desk.send(to: .user("bob"), hub: hub), desk.send(to: .user("bob")))
    #expect(desk.retries.count == 1 && desk.deadLetters.isEmpty)
    #expect(desk.pushes.count == 1)
  }

  /// A desk whose registry has devices of a hub that was first registered after the worker's start.
  private func lateHubDesk() throws -> (Desk, HubName) {
    let hub = try #require(HubName("late"))
    var desk = desk()
    desk.broadcasts.hubs.append(hub)
    return (desk, hub)
  }

  @Test func hubRegisteredAfterStartIsDeferred() throws {
    var (desk, hub) = try lateHubDesk()
    desk.deliver(desk.send(to: .user("bob"), hub: hub), desk.send(to: .user("bob")))
    desk.answerAll()
    // Two devices of the late hub in one record, and one of the default hub.
    #expect(desk.deadLetters.isEmpty && desk.retries.count == 2 && desk.position == 2)
    #expect(desk.readinessProblems.count == 3)
    // The hub is known from now on.
    desk.answersQuestions = false
    desk.deliver(desk.send(to: .user("bob"), hub: hub))
    #expect(desk.retries.count == 3 && desk.questions.isEmpty)
  }

  @Test func recordOfUnknownHubWaitsForRegistry() throws {
    var (desk, hub) = try lateHubDesk()
    desk.broadcasts.isDown = true
    let nowhere = try #require(HubName("nowhere"))
    desk.deliver(desk.send(to: .user("bob"), hub: hub), desk.send(to: .user("bob"), hub: nowhere))
    #expect(desk.deadLetters.isEmpty && desk.retries.isEmpty && desk.position == nil)
    #expect(desk.held.records == 2)
    desk.broadcasts.isDown = false
    desk.advance(.seconds(5))
    #expect(desk.deadLetters.map(\.reason) == [.unknownHub] && desk.retries.count == 1 && desk.position == 2)
    #expect(desk.held.records == 0)
  }

  @Test func recordOfUnknownHubIsLeftToNextOwner() throws {
    var (desk, hub) = try lateHubDesk()
    desk.answersQuestions = false
    desk.deliver(desk.send(to: .user("bob"), hub: hub))
    desk.lose()
    desk.answerQuestions()
    #expect(desk.deadLetters.isEmpty && desk.retries.isEmpty && desk.held.records == 0)
  }

  @Test func recordIsNotJudgedByAnEarlierQuestion() throws {
    var (desk, hub) = try lateHubDesk()
    desk.answersQuestions = false
    desk.deliver(desk.send(to: .user("bob"), hub: hub))
    desk.lose()
    desk.assign([Desk.partition])
    // The registry has read its hubs before the second record came.
    let nowhere = try #require(HubName("nowhere"))
    desk.deliver(desk.send(to: .user("bob"), hub: nowhere))
    desk.answerQuestions()
    #expect(desk.deadLetters.isEmpty && desk.questions.count == 1)
    desk.broadcasts.hubs.append(nowhere)
    desk.answerQuestions()
    #expect(desk.deadLetters.isEmpty && desk.retries.count == 1)
  }
}
