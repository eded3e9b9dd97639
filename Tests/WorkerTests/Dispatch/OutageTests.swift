import FanfareCore
import Support
import Testing

@testable import Worker

/// A push service that does not answer: it is left alone, the others go on, and nothing is lost.
struct OutageTests {
  private static let silence = PushOutcome(.retryLater, reason: "ServiceUnavailable", status: 503)

  private func desk() -> Desk {
    var desk = Desk(retryDelays: [15, 60, 300])
    for number in 0..<100 { desk.register("u\(number)", .apns, .fcm) }
    return desk
  }

  /// Lets APNs fall silent until its circuit opens.
  private func breakDown(_ desk: inout Desk) {
    for number in 0..<20 { desk.deliver(desk.send(to: .user("u\(number)"))) }
    for push in desk.pushes.filter({ $0.handle.hasSuffix("-0") }).dropLast() {
      desk.answer(push, Self.silence, from: 0)
    }
    #expect(desk.circuit(0) == .closed, "failures all at once are no outage")
    desk.advance(.seconds(3))
    for push in desk.pushes.filter({ $0.handle.hasSuffix("-0") }).suffix(1) { desk.answer(push, Self.silence, from: 0) }
    #expect(desk.circuit(0) == .open)
  }

  @Test func circuitOpensAndOtherPlatformFlows() {
    var desk = desk()
    breakDown(&desk)
    #expect(
      desk.alarms.contains {
        if case .serviceUnavailable(sender: 0, reason: "ServiceUnavailable") = $0 { true } else { false }
      })
    let problem = ReadinessProblem(
      "default/apns: the push service is unavailable: ServiceUnavailable", hubs: [.default])
    #expect(desk.readinessProblems == [problem])
    let before = desk.pushes.count
    for number in 20..<100 { desk.deliver(desk.send(to: .user("u\(number)"))) }
    let later = desk.pushes[before...]
    #expect(later.count == 80 && later.allSatisfy { $0.handle.hasSuffix("-1") })
  }

  @Test func pushesForStoppedServiceAreDeferredButForProbes() {
    var desk = desk()
    breakDown(&desk)
    for number in 20..<100 { desk.deliver(desk.send(to: .user("u\(number)"))) }
    for push in desk.pushes.filter({ $0.handle.hasSuffix("-1") }) {
      desk.answer(push, PushOutcome(.accepted, status: 200), from: 1)
    }
    desk.advance(.seconds(2))
    #expect(desk.queued(0) == 4)
    #expect(desk.held.records == 4)
    #expect(desk.statuses.isEmpty)
    #expect(desk.retries.count == 96)
  }

  @Test(arguments: [20, 75, 82, 84, 400])
  func deferredPushComesBackBeforeItExpires(timeToLive: Int)
    throws
  {
    var desk = desk()
    breakDown(&desk)
    desk.advance(.seconds(180))
    // Enough sends that a round takes more than a minute.
    for number in 0..<100 { desk.register("i\(number)", .apns) }
    for second in 0..<4 {
      for number in 0..<1_700 { desk.deliver(desk.send(to: .user("i\((second + number) % 100)"))) }
      desk.advance(.seconds(1))
    }
    let first = desk.retries.count
    let accepted = desk.wall
    for number in 0..<100 { desk.deliver(desk.send(to: .user("i\(number)"), timeToLive: timeToLive)) }
    desk.advance(.seconds(2))
    let expiry = accepted + .seconds(timeToLive)
    var returning = 0
    for (topic, value) in desk.retries[first...] {
      let retry = try RetryRecord.decode(value[...], recordTime: desk.wall)
      guard retry.send.timeToLive == timeToLive else { continue }
      let delay = try #require(desk.retryTopics.first { $0.name == topic }).delay
      #expect(retry.notBefore + RetryTopic.lateness(of: delay) < expiry)
      returning += 1
    }
    #expect(returning > 90)
  }

  @Test func positionsAreCommittedThroughoutOutage() throws {
    var desk = desk()
    breakDown(&desk)
    for push in desk.pushes where push.handle.hasSuffix("-1") {
      desk.answer(push, PushOutcome(.accepted, status: 200), from: 1)
    }
    var probes: [(at: Int64, push: Push)] = []
    var (pushes, returned, read) = (desk.pushes.count, 0, 20)
    for second in 0..<300 {
      desk.deliver(desk.send(to: .user("u\(second % 100)")))
      read += 1
      for value in desk.retries[returned...].map(\.value) {
        guard try RetryRecord.decode(value[...], recordTime: desk.wall).notBefore <= desk.wall else { break }
        desk.deliver([value])
        returned += 1
        read += 1
      }
      desk.advance(.seconds(1))
      for push in desk.pushes[pushes...] where push.handle.hasSuffix("-1") {
        desk.answer(push, PushOutcome(.accepted, status: 200), from: 1)
      }
      probes += desk.pushes[pushes...].filter { $0.handle.hasSuffix("-0") }.map { (desk.uptime, $0) }
      pushes = desk.pushes.count
      while let first = probes.first, first.at + 30_000 <= desk.uptime {
        desk.answer(first.push, PushOutcome(.unknown, reason: "DeadlineExceeded"), from: 0)
        probes.removeFirst()
      }
    }
    // All but the records of the time that a push waits for its attempt and until it is given up.
    let position = try #require(desk.position)
    #expect(Int(position) > read * 2 / 3)
  }

  @Test func refusedPushLeavesBeforeSpanIsExhausted() {
    var desk = Desk(retryDelays: [15, 60, 300]) { $0.limits.maximumSpan = 40 }
    for number in 0..<100 { desk.register("u\(number)", .apns, .fcm) }
    var answered = 0
    for number in 0..<40 {
      desk.deliver(desk.send(to: .user("u\(number)")))
      desk.advance(.seconds(1))
      while answered < desk.pushes.count {
        let push = desk.pushes[answered]
        let isRefused = push.handle.hasSuffix("-0")
        desk.answer(
          push,
          isRefused
            ? PushOutcome(.configurationError, reason: "BadTopic", status: 400) : PushOutcome(.accepted, status: 200),
          from: isRefused ? 0 : 1)
        answered += 1
      }
    }
    desk.advance(.seconds(1))
    #expect(desk.dispatcher.partitions.offsets.largestSpan < 20)
    #expect(desk.statuses.isEmpty, "all of them wait for APNs")
  }

  @Test func goodPushBecomesProbeHoweverManyAreRefused() {
    var desk = Desk(retryDelays: [15, 60, 300])
    for number in 0..<100 { desk.register("u\(number)", .apns) }
    for number in 0..<99 { desk.deliver(desk.send(to: .user("u\(number)"))) }
    for push in desk.pushes {
      desk.answer(push, PushOutcome(.configurationError, reason: "BadTopic", status: 400), from: 0)
    }
    desk.deliver(desk.send(to: .user("u99")))
    desk.advance(.seconds(1))
    #expect(desk.held.records == 4)
    let seen = desk.pushes.count
    for _ in 0..<60 where desk.pushes.count == seen { desk.advance(.seconds(1)) }
    #expect(desk.pushes[seen...].map(\.handle) == ["u99-0"])
  }

  @Test func oneProbeAtATimeAndSuccessClosesCircuitOnce() {
    var desk = desk()
    breakDown(&desk)
    for number in 20..<100 { desk.deliver(desk.send(to: .user("u\(number)"))) }
    for push in desk.pushes.filter({ $0.handle.hasSuffix("-1") }) {
      desk.answer(push, PushOutcome(.accepted, status: 200), from: 1)
    }
    desk.advance(.seconds(2))
    var seen = desk.pushes.count
    desk.advance(.seconds(4))
    #expect(desk.pushes.count == seen + 1, "a probe")
    desk.answer(desk.pushes[seen], Self.silence, from: 0)
    #expect(desk.circuit(0) == .open)
    seen = desk.pushes.count
    desk.advance(.seconds(6))
    desk.answer(desk.pushes[seen], PushOutcome(.accepted, status: 200), from: 0)
    #expect(desk.circuit(0) == .closed)
    desk.advance(.seconds(40))
    let values = desk.retries.map(\.value)
    for value in values { desk.deliver([value]) }
    for push in desk.pushes[(seen + 1)...] { desk.answer(push, PushOutcome(.accepted, status: 200), from: 0) }
    #expect(desk.held.records == 0)
    #expect(Set(desk.statuses.map(\.send)).count == 100 && desk.statuses.count == 100)
    #expect(desk.statuses.flatMap(\.devices).allSatisfy { $0.outcome == .delivered })
  }

  @Test func slowRegistryIsNotASilentPushService() {
    var desk = Desk { $0.limits.maximumPushesPerSender = 25 }
    for number in 0..<50 { desk.register("u\(number)", .fcm) }
    for number in 0..<50 { desk.deliver(desk.send(to: .user("u\(number)"))) }
    #expect(desk.pushes.count == 25)
    // Those that have waited are looked up again before they go.
    desk.advance(.seconds(1))
    desk.answersLookUps = false
    for push in desk.pushes { desk.answer(push, PushOutcome(.accepted, status: 200)) }
    #expect(desk.places.map(\.checking).max() == 25)
    desk.advance(.seconds(30))
    #expect(desk.dispatcher.lanes.allSatisfy { $0.breaker.state == .closed })
    #expect(desk.alarms.isEmpty)
    desk.answersLookUps = true
    desk.answerLookUp()
    #expect(desk.places.map(\.checking).max() == 0)
    for push in desk.pushes[25...] { desk.answer(push, PushOutcome(.accepted, status: 200)) }
    #expect(desk.statuses.count == 50 && desk.takenPlaces == 0)
  }

  @Test func silentServiceDoesNotDelayOtherPlatforms() {
    var desk = desk()
    for _ in 0..<3 { for number in 0..<20 { desk.deliver(desk.send(to: .user("u\(number)"))) } }
    func pushes(_ platform: String) -> [Push] { desk.pushes.filter { $0.handle.hasSuffix(platform) } }
    desk.advance(.milliseconds(100))
    for push in pushes("-1") { desk.answer(push, PushOutcome(.accepted, status: 200), from: 1) }
    #expect(pushes("-1").count == 20, "the second sends of all users wait for what APNs says to the first")
    desk.advance(.seconds(2))
    #expect(pushes("-1").count == 40)
    for push in pushes("-1")[20...] { desk.answer(push, PushOutcome(.accepted, status: 200), from: 1) }
    #expect(pushes("-1").count == 60)
    #expect(desk.circuit(0) == .closed)
    desk.advance(.seconds(3))
    #expect(desk.circuit(0) == .open, "long before their time is up")
    #expect(
      desk.alarms.contains { if case .serviceUnavailable(sender: 0, reason: "Silence") = $0 { true } else { false } })
    // A late answer counts all the same.
    for push in pushes("-0") { desk.answer(push, PushOutcome(.accepted, status: 200), from: 0) }
    for push in pushes("-1")[40...] { desk.answer(push, PushOutcome(.accepted, status: 200), from: 1) }
    #expect(desk.statuses.count == 60)
  }

  @Test func oneSlowAnswerIsWaitedFor() {
    var desk = desk()
    desk.deliver(desk.send(to: .user("u0")), desk.send(to: .user("u0")))
    let first = desk.pushes
    for number in 1..<8 {
      desk.deliver(desk.send(to: .user("u\(number)")))
      desk.advance(.seconds(1))
      for push in desk.pushes.suffix(2) { desk.answer(push, PushOutcome(.accepted, status: 200)) }
    }
    desk.answer(first[1], PushOutcome(.accepted, status: 200))
    #expect(!desk.pushes[2...].contains { $0.handle.hasPrefix("u0") })
    desk.answer(first[0], PushOutcome(.accepted, status: 200))
    #expect(desk.pushes.suffix(2).allSatisfy { $0.handle.hasPrefix("u0") })
  }
}
