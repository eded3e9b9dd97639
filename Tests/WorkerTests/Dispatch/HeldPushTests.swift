import FanfareCore
import RDKafka
import Support
import Testing

@testable import Worker

/// What becomes of pushes that are refused as a mistake of the operator: kept while it may be one, given up when it is
/// plainly their own.
struct HeldPushTests {
  private static let refusal = PushOutcome(.configurationError, reason: "TopicDisallowed", status: 400)

  private func desk(maximumPushes: Int = 100) -> Desk {
    var desk = Desk {
      $0.times.probeInterval = .seconds(15)
      $0.limits.maximumPushes = maximumPushes
    }
    for user in ["bad", "a", "b"] { desk.register(user, .fcm) }
    return desk
  }

  private func stops(_ desk: Desk) -> Int {
    desk.alarms.count { if case .senderStopped = $0 { true } else { false } }
  }

  @Test func refusedPushGoesBehindOthers() {
    var desk = desk(maximumPushes: 1)
    for user in ["bad", "a", "b"] { desk.deliver(desk.send(to: .user(user))) }
    desk.answer(desk.pushes[0], Self.refusal)
    desk.advance(.seconds(16))
    #expect(desk.pushes.map(\.handle) == ["bad-0", "a-0"])
    desk.answer(desk.pushes[1], PushOutcome(.accepted, status: 200))
    desk.answer(desk.pushes[2], PushOutcome(.accepted, status: 200))
    #expect(desk.pushes.map(\.handle) == ["bad-0", "a-0", "b-0", "bad-0"])
  }

  /// The refusal of a push that was given up is not attributed to a device: another push must be the probe.
  @Test func anotherPushIsProbeAfterOneThatWasGivenUp() throws {
    var desk = desk()
    desk.deliver(desk.send(to: .user("a")))
    desk.answer(desk.pushes[0], Self.refusal)
    desk.advance(.seconds(16))
    #expect(desk.pushes.count == 2 && desk.circuit(1) == .halfOpen)
    desk.lose()
    desk.assign([Desk.partition])
    desk.deliver(desk.send(to: .user("b")))
    #expect(desk.pushes.count == 2)
    desk.answer(desk.pushes[1], Self.refusal)
    desk.advance(.seconds(16))
    try #require(desk.pushes.map(\.handle) == ["a-0", "a-0", "b-0"])
    desk.answer(desk.pushes[2], PushOutcome(.accepted, status: 200))
    #expect(desk.circuit(1) == .closed && desk.statuses.count == 1)
  }

  @Test func pushRefusedAloneStopsUntriedSenderOnce() {
    var desk = desk()
    desk.deliver(desk.send(to: .user("bad")))
    var answered = 0
    for _ in 0..<12 {
      desk.deliver(desk.send(to: .user("a")))
      while answered < desk.pushes.count {
        let push = desk.pushes[answered]
        desk.answer(push, push.handle == "bad-0" ? Self.refusal : PushOutcome(.accepted, status: 200))
        answered += 1
      }
      desk.advance(.seconds(16))
    }
    #expect(stops(desk) == 1)
    #expect(desk.circuit(1) == .closed)
    #expect(desk.statuses.count == 12, "the refused push waits")
  }

  /// It is deferred while others are accepted, and holds neither the sender nor the other pushes of its send.
  @Test func refusedPushOfLargeSendIsDeferredAndStopsTheSenderOnce() {
    var desk = Desk(retryDelays: [2, 15]) { $0.times.probeInterval = .seconds(5) }
    desk.registry[.user("crowd")] = [Desk.target("bad-0", .fcm)] + (0..<20).map { Desk.target("good-\($0)", .fcm) }
    desk.deliver(desk.send(to: .user("crowd")))
    var answered = 0
    for number in 0..<150 {
      desk.register("a\(number)", .fcm)
      desk.deliver(desk.send(to: .user("a\(number)")))
      while answered < desk.pushes.count {
        let push = desk.pushes[answered]
        desk.answer(push, push.handle == "bad-0" ? Self.refusal : PushOutcome(.accepted, status: 200))
        answered += 1
      }
      desk.advance(.seconds(2))
    }
    #expect(desk.statuses.flatMap(\.devices).allSatisfy { $0.outcome == .delivered })
    #expect(!desk.retries.isEmpty)
    #expect(stops(desk) == 1)
  }

  @Test func lastRefusalOfHeldPushIsNoProbe() {
    var desk = desk(maximumPushes: 1)
    for user in ["b", "bad"] { desk.deliver(desk.send(to: .user(user))) }
    let slot = desk.dispatcher.items.firstIndex { $0.send?.audience == .user("bad") } ?? 0
    desk.dispatcher.items[slot][device: 0].contradict(3)
    desk.answer(desk.pushes[0], Self.refusal)
    desk.advance(.seconds(16))
    desk.answer(desk.pushes[1], Self.refusal)
    #expect(desk.pushes.map(\.handle) == ["b-0", "bad-0", "b-0"])
    #expect(desk.statuses.flatMap(\.devices).map(\.outcome) == [.failed])
    desk.answer(desk.pushes[2], PushOutcome(.accepted, status: 200))
    #expect(desk.circuit(1) == .closed)
  }

  @Test func heldPushesKeepAllAttemptsUntilRecovery() {
    var desk = desk()
    for user in ["a", "b"] { desk.deliver(desk.send(to: .user(user))) }
    for push in desk.pushes { desk.answer(push, Self.refusal) }
    // Hours: far more probes than a push has attempts.
    for _ in 0..<1_000 {
      let probe = desk.pushes.count
      desk.advance(.seconds(16))
      #expect(desk.pushes.count == probe + 1)
      desk.answer(desk.pushes[probe], Self.refusal)
    }
    #expect(desk.statuses.isEmpty)
    #expect(Set(desk.pushes.suffix(2).map(\.handle)) == ["a-0", "b-0"])
    #expect(stops(desk) == 1)
    desk.advance(.seconds(16))
    desk.answer(desk.pushes[desk.pushes.count - 1], PushOutcome(.accepted, status: 200))
    // Busy after all that is no reason to give up.
    desk.answer(desk.pushes[desk.pushes.count - 1], PushOutcome(.retryLater, reason: "Busy", status: 503))
    #expect(desk.statuses.count == 1)
    desk.advance(.seconds(10))
    desk.answer(desk.pushes[desk.pushes.count - 1], PushOutcome(.accepted, status: 200))
    #expect(desk.statuses.flatMap(\.devices).map(\.outcome) == [.delivered, .delivered])
    #expect(desk.position == 2)
  }
}

extension DeviceProgress {
  /// Makes it known as held that often while its sender worked for other pushes.
  fileprivate mutating func contradict(_ times: Int) {
    var history = history
    history.contradictions = times
    tried(history)
  }
}
