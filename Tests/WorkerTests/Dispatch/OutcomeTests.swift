import FanfareCore
import RDKafka
import Support
import Testing

@testable import Worker

struct OutcomeTests {
  /// A desk with one send to one device, pushed and not answered.
  private func pushed(timeToLive: Int? = nil, configure: (inout WorkerConfiguration) -> Void = { _ in }) -> Desk {
    var desk = Desk(configure: configure)
    desk.register("bob", .fcm)
    desk.deliver(desk.send(to: .user("bob"), timeToLive: timeToLive))
    return desk
  }

  @Test(arguments: [
    (PushOutcome.Verdict.accepted, DeviceResult.Outcome.delivered), (.rejected, .rejected), (.malformed, .rejected),
    (.deviceGone, .deviceGone),
  ]) func finalAnswerIsTheResult(verdict: PushOutcome.Verdict, outcome: DeviceResult.Outcome) {
    var desk = pushed()
    desk.answerAll(from: 0, PushOutcome(verdict, reason: "Reason", status: 400))
    #expect(desk.statuses.first?.devices.map(\.outcome) == [outcome])
    #expect(desk.statuses.first?.devices.map(\.status) == [400])
    #expect(desk.position == 1)
    let isMalformed = desk.alarms.contains { if case .malformed = $0 { true } else { false } }
    #expect(isMalformed == (verdict == .malformed))
  }

  @Test func quickRetriesKeepPushIDAndAreBounded() {
    var desk = pushed()
    for attempt in 1...4 {
      #expect(desk.pushes.count == attempt)
      desk.answer(desk.pushes[attempt - 1], PushOutcome(.retryHere, reason: "Shutdown", status: 503))
    }
    #expect(desk.pushes.count == 4)
    #expect(Set(desk.pushes.map(\.id)).count == 1)
    #expect(desk.restingCount == 1)
    desk.advance(.seconds(10))
    desk.answer(desk.pushes[4], PushOutcome(.accepted, status: 200))
    #expect(desk.statuses.first?.devices.map(\.attempts) == [5])
    #expect(desk.statuses.first?.devices.map(\.outcome) == [.delivered])
  }

  @Test func restingPushIsSentWhenDueAndNotBefore() {
    var desk = pushed()
    desk.answerAll(from: 0, PushOutcome(.retryLater, reason: "QuotaExceeded", status: 429, retryAfter: .seconds(60)))
    desk.advance(.seconds(59))
    #expect(desk.pushes.count == 1)
    desk.advance(.seconds(7))
    #expect(desk.pushes.count == 2)
    #expect(desk.pushes[1].id == desk.pushes[0].id)
    #expect(desk.pushes[1].expiresAt == desk.pushes[0].expiresAt)
    #expect(desk.position == nil)
    desk.answer(desk.pushes[1], PushOutcome(.accepted, status: 200))
    #expect(desk.position == 1)
  }

  @Test func repeatedRefusalFailsAndNoAnswerIsUnconfirmed() {
    for (verdict, outcome, attempts) in [
      (PushOutcome.Verdict.retryLater, DeviceResult.Outcome.failed, 8), (.unknown, .unconfirmed, 4),
    ] {
      var desk = pushed()
      var answered = 0
      while answered < desk.pushes.count, answered < 20 {
        desk.answer(
          desk.pushes[answered],
          PushOutcome(verdict, reason: "Why", status: 503, retryAfter: verdict == .unknown ? nil : .seconds(1)))
        answered += 1
        desk.advance(.seconds(100))
      }
      #expect(desk.statuses.first?.devices.map(\.outcome) == [outcome])
      #expect(desk.statuses.first?.devices.map(\.reason) == ["Why"])
      #expect(desk.statuses.first?.devices.map(\.attempts) == [attempts])
    }
  }

  @Test func sendIsNeverDeliveredLate() {
    var desk = Desk { $0.limits.maximumPushes = 1 }
    for user in ["a", "b", "c"] { desk.register(user, .fcm) }
    desk.deliver(
      desk.send(to: .user("a"), timeToLive: 10), desk.send(to: .user("b"), timeToLive: 10),
      desk.send(to: .user("c"), timeToLive: 3600))
    #expect(desk.pushes.count == 1)
    desk.answer(desk.pushes[0], PushOutcome(.retryLater, reason: "Busy", status: 503, retryAfter: .seconds(4)))
    desk.answer(desk.pushes[1], PushOutcome(.retryLater, reason: "Busy", status: 503, retryAfter: .seconds(12)))
    // The second would have to wait past its end.
    #expect(desk.statuses.map(\.state) == [.settled])
    #expect(desk.statuses.first?.devices.map(\.outcome) == [.expired])
    #expect(desk.statuses.first?.devices.map(\.reason) == ["Busy"])
    // The third keeps the only place until the first has expired in the queue.
    desk.advance(.seconds(11))
    desk.answer(desk.pushes[2], PushOutcome(.accepted))
    #expect(desk.pushes.count == 3)
    #expect(desk.statuses.count == 3)
    #expect(desk.statuses.flatMap(\.devices).map(\.outcome).filter { $0 == .expired }.count == 2)
  }

  @Test func sendExpiredBeforeLookUpIsExpired() {
    var desk = Desk()
    desk.register("bob", .fcm)
    let send = desk.send(to: .user("bob"), timeToLive: 10)
    desk.wall = desk.wall + .seconds(10)
    desk.deliver(send)
    #expect(desk.statuses.map(\.state) == [.expired])
    #expect(desk.queries.isEmpty)
    #expect(desk.pushes.isEmpty)
  }

  @Test func credentialRefusedTwiceOpensCircuitUntilProbeSucceeds() {
    var desk = Desk {
      $0.times.probeInterval = .seconds(15)
      $0.times.defaultTimeToLive = .seconds(600)
    }
    for number in 0..<5 { desk.register("user\(number)", number == 4 ? .apns : .fcm) }
    for number in 0..<3 { desk.deliver(desk.send(to: .user("user\(number)"))) }
    let refusal = PushOutcome(.reauthenticate, reason: "Unauthenticated", status: 401)
    desk.answer(desk.pushes[0], refusal)
    #expect(desk.pushes.count == 4)
    desk.answer(desk.pushes[3], refusal)
    #expect(desk.pushes.count == 4)
    #expect(desk.readinessProblems.count == 1)
    // Others in flight fare alike; it is said once.
    for index in [1, 2] {
      desk.answer(desk.pushes[index], PushOutcome(.configurationError, reason: "Forbidden", status: 403))
    }
    desk.deliver(desk.send(to: .user("user3")))
    #expect(desk.pushes.count == 4)
    #expect(desk.alarms.filter { if case .senderStopped = $0 { true } else { false } }.count == 1)
    // Another platform does not notice.
    desk.deliver(desk.send(to: .user("user4")))
    #expect(desk.pushes.count == 5)
    // One probe only; refused, it waits for the next interval.
    desk.advance(.seconds(16))
    #expect(desk.pushes.count == 6)
    desk.answer(desk.pushes[5], PushOutcome(.configurationError, reason: "Forbidden", status: 403))
    desk.advance(.seconds(14))
    #expect(desk.pushes.count == 6)
    desk.advance(.seconds(2))
    #expect(desk.pushes.count == 7)
    desk.answer(desk.pushes[6], PushOutcome(.accepted, status: 200))
    #expect(desk.pushes.count == 10)
    #expect(desk.readinessProblems.isEmpty)
    desk.answerAll(from: 4)
    #expect(desk.statuses.count == 5)
    #expect(desk.statuses.flatMap(\.devices).allSatisfy { $0.outcome == .delivered })
    #expect(desk.position == 5)
  }

  @Test func pushForStoppedSenderExpiresInTime() {
    var desk = pushed(timeToLive: 60) { $0.times.probeInterval = .seconds(1000) }
    desk.answerAll(from: 0, PushOutcome(.configurationError, reason: "Forbidden", status: 403))
    desk.deliver(desk.send(to: .user("bob"), timeToLive: 30))
    desk.advance(.seconds(10))
    #expect(desk.statuses.isEmpty)
    desk.advance(.seconds(30))
    #expect(desk.statuses.map(\.state) == [.expired])
    desk.advance(.seconds(30))
    #expect(desk.statuses.count == 2)
    #expect(desk.statuses.last?.devices.map(\.outcome) == [.expired])
    #expect(desk.statuses.last?.devices.map(\.reason) == ["Forbidden"])
    #expect(desk.position == 2)
  }

  @Test func probeOfGivenUpItemDoesNotKeepCircuitOpen() {
    var desk = pushed()
    desk.answerAll(from: 0, PushOutcome(.configurationError, reason: "Forbidden", status: 403))
    desk.advance(.seconds(20))
    #expect(desk.pushes.count == 2)
    desk.lose()
    desk.answer(desk.pushes[1], PushOutcome(.accepted), from: 1)
    #expect(desk.circuit(1) == .closed)
    #expect(desk.takenPlaces == 0)
  }

  @Test func deadDevicesAreUnregisteredUnlessTooManyLookDead() {
    var desk = Desk {
      $0.unregisterPolicy.minimumCount = 20
      $0.unregisterPolicy.window = 100
    }
    let since = UnixTime(milliseconds: 1_700_000_000_000)
    func die(_ users: Range<Int>) {
      let first = desk.pushes.count
      for number in users { desk.register("user\(number)", .apns) }
      for number in users { desk.deliver(desk.send(to: .user("user\(number)"))) }
      for push in desk.pushes[first...] {
        desk.answer(push, PushOutcome(.deviceGone, reason: "Unregistered", status: 410, since: since))
      }
    }
    die(0..<5)
    #expect(desk.drops.isEmpty)
    desk.advance(.seconds(1))
    #expect(desk.drops.count == 5)
    #expect(desk.drops.allSatisfy { $0.since == since && $0.reason == "Unregistered" && $0.hub == .default })
    #expect(desk.drops.map(\.handle).sorted() == (0..<5).map { "user\($0)-0" })
    // The next suspects are held for a second, and kept registered because nearly all devices look dead by then.
    die(5..<60)
    desk.advance(.seconds(1))
    #expect(desk.drops.count == 5)
    #expect(desk.alarms.filter { if case .unregisteringSuspended = $0 { true } else { false } }.count == 1)
    #expect(desk.statuses.flatMap(\.devices).filter { $0.outcome == .deviceGone }.count == 60)
  }
}
