import FanfareCore
import Testing

@testable import Worker

/// A device that is refused as if the credential were wrong, beside others whose pushes are accepted.
struct LoneRefusalTests {
  private static let accepted = PushOutcome(.accepted, status: 200)
  private static let refusal = PushOutcome(.configurationError, reason: "TopicDisallowed", status: 400)
  private static let expired = PushOutcome(.reauthenticate, reason: "ExpiredProviderToken", status: 403)

  @Test func refusalIsTheDevicesForAMinuteAfterAProof() {
    var trust = CredentialTrust(limit: 3)
    let devices = (0..<3).map { _ in RegistrationID.random() }
    func refuse(_ device: Int, at uptime: Int64) -> Bool { trust.refuse(devices[device], at: uptime) }
    #expect(!refuse(0, at: 0), "no proof yet")
    trust.prove(at: 1_000)
    #expect(refuse(0, at: 2_000) && refuse(0, at: 60_999) && refuse(1, at: 60_999))
    #expect(!refuse(2, at: 60_999), "the third in a row")
    #expect(!trust.isProved(at: 60_999))
    trust.prove(at: 70_000)
    #expect(refuse(0, at: 129_999) && !refuse(0, at: 130_000), "a minute has passed")
    #expect(trust.checkInvariants() == [])
  }

  /// A desk whose service has accepted a push.
  private func desk(retryDelays: [Int] = Desk.distant) -> Desk {
    var desk = Desk(retryDelays: retryDelays)
    for number in 0..<40 { desk.register("good\(number)", .apns) }
    for number in 0..<210 { desk.register("bad\(number)", .apns) }
    desk.deliver(desk.send(to: .user("good0")))
    desk.answerAll()
    return desk
  }

  private func stops(_ desk: Desk) -> Int {
    desk.alarms.count { if case .senderStopped = $0 { true } else { false } }
  }

  /// Answers what was handed over since `first`; devices of users named "bad" are refused.
  private func answer(_ desk: inout Desk, from first: inout Int, with refusal: PushOutcome) {
    while first < desk.pushes.count {
      let push = desk.pushes[first]
      first += 1
      desk.answer(push, push.handle.hasPrefix("bad") ? refusal : Self.accepted)
    }
  }

  @Test(arguments: [refusal, expired]) func refusedDeviceDelaysNoOther(refusal: PushOutcome) {
    var desk = desk(retryDelays: [15, 60, 300])
    var answered = desk.pushes.count
    for round in 0..<60 {
      desk.deliver(desk.send(to: .user("bad0")), desk.send(to: .user("good\(round % 40)")))
      answer(&desk, from: &answered, with: refusal)
      #expect(desk.statuses.filter { $0.devices.first?.outcome == .delivered }.count == round + 2)
      desk.advance(.seconds(1))
      answer(&desk, from: &answered, with: refusal)
    }
    #expect(stops(desk) == 0)
    #expect(desk.readinessProblems.isEmpty)
    desk.deliver(desk.send(to: .user("good0")))
    for _ in 0..<60 {
      answer(&desk, from: &answered, with: refusal)
      desk.advance(.seconds(1))
    }
    #expect(desk.statuses.count == 62 && desk.held.records == 0, "the refused ones are deferred")
    #expect(desk.alarms.count { if case .deviceRefused = $0 { true } else { false } } == 2, "once a minute")
    #expect(desk.drops.isEmpty)
    #expect(desk.position == 122)
  }

  /// The refusal may pass, so it does not end a send before its time to live.
  @Test(arguments: [refusal, expired], [true, false])
  func refusedPushIsRepeatedUntilItsSendExpires(refusal: PushOutcome, passes: Bool) throws {
    var desk = desk(retryDelays: [15, 60, 300])
    var (answered, readmitted) = (desk.pushes.count, 0)
    desk.deliver(desk.send(to: .user("bad0"), timeToLive: 3600))
    for step in 0..<800 {
      if step % 4 == 0 { desk.deliver(desk.send(to: .user("good\(step % 40)"))) }
      answer(&desk, from: &answered, with: passes && step >= 600 ? Self.accepted : refusal)
      desk.advance(.seconds(5))
      while readmitted < desk.retries.count {
        let record = try RetryRecord.decode(desk.retries[readmitted].value[...], recordTime: desk.wall)
        guard record.notBefore <= desk.wall else { break }
        desk.deliver([desk.retries[readmitted].value])
        readmitted += 1
      }
    }
    let attempts = desk.pushes.count { $0.handle.hasPrefix("bad0") }
    #expect(attempts > 10 && attempts < 50, "\(attempts)")
    let results = desk.statuses.flatMap(\.devices).filter { $0.attempts > 1 }
    #expect(results.map(\.outcome) == [passes ? .delivered : .expired])
    #expect(stops(desk) == 0 && desk.readinessProblems.isEmpty)
    #expect(desk.statuses.flatMap(\.devices).count { $0.outcome == .delivered } == (passes ? 202 : 201))
  }

  /// One push, and a credential that is revoked after it has worked, with an outage in between or without.
  @Test(arguments: [false, true]) func onlyPushOutlivesARevokedCredential(hasOutage: Bool) throws {
    var desk = desk(retryDelays: [15, 60, 300])
    var answered = desk.pushes.count
    if hasOutage {
      for number in 0..<30 { desk.deliver(desk.send(to: .user("good\(number)"), timeToLive: 20)) }
      for _ in 0..<15 { desk.advance(.seconds(1)) }
      #expect(desk.circuit(0) != .closed)
      answered = desk.pushes.count
    }
    desk.deliver(desk.send(to: .user("bad0"), timeToLive: 86_400))
    var (returned, refused) = (0, 0)
    for _ in 0..<600 {
      while answered < desk.pushes.count {
        desk.answer(desk.pushes[answered], Self.refusal)
        if desk.pushes[answered].handle.hasPrefix("bad0") { refused += 1 }
        answered += 1
      }
      desk.advance(.seconds(1))
      while returned < desk.retries.count {
        let value = desk.retries[returned].value
        guard try RetryRecord.decode(value[...], recordTime: desk.wall).notBefore <= desk.wall else { break }
        desk.deliver([value])
        returned += 1
      }
    }
    #expect(refused > 4)
    #expect(!desk.statuses.flatMap(\.devices).contains { $0.outcome == .failed })
  }

  @Test func refusedDevicesWaitWhileNothingElseIsSent() {
    var desk = desk(retryDelays: [15, 60, 300])
    var answered = desk.pushes.count
    desk.deliver(desk.send(to: .user("bad0")))
    for _ in 0..<50 {
      answer(&desk, from: &answered, with: Self.refusal)
      desk.advance(.seconds(1))
    }
    #expect(desk.statuses.count == 1, "nothing shows that only this device is refused")
    #expect(stops(desk) == 0)
  }

  @Test func credentialThatEveryoneIsRefusedForStopsSenderAndKeepsMessages() {
    var desk = desk()
    let first = desk.pushes.count
    for number in 0..<210 { desk.deliver(desk.send(to: .user("bad\(number)"))) }
    for push in desk.pushes[first...] { desk.answer(push, Self.refusal) }
    #expect(stops(desk) == 1)
    #expect(desk.circuit(0) == .open)
    #expect(desk.statuses.count == 1)
    // The operator has replaced the key.
    var answered = desk.pushes.count
    for _ in 0..<40 {
      desk.advance(.seconds(1))
      while answered < desk.pushes.count {
        desk.answer(desk.pushes[answered], Self.accepted)
        answered += 1
      }
    }
    #expect(desk.statuses.count + desk.retries.count == 211 && desk.statuses.count > 1)
    #expect(desk.statuses.flatMap(\.devices).allSatisfy { $0.outcome == .delivered })
  }

  @Test func refusalsOfFewDevicesStopSenderAfterMinuteWithoutProof() {
    var desk = desk()
    var answered = desk.pushes.count
    for number in 0..<70 {
      if number % 10 == 0 { desk.deliver(desk.send(to: .user("bad0")), desk.send(to: .user("bad1"))) }
      answer(&desk, from: &answered, with: Self.refusal)
      desk.advance(.seconds(1))
    }
    #expect(stops(desk) == 1)
    #expect(desk.statuses.count == 1)
  }

  @Test func manyRefusedDevicesOfOneUserSeldomStopSender() {
    var desk = desk()
    desk.registry[.user("bad")] = (0..<40).map { Desk.target("bad-\($0)", .apns) }
    var answered = desk.pushes.count
    for round in 0..<20 {
      desk.deliver(desk.send(to: .user("bad")))
      for _ in 0..<20 {
        answer(&desk, from: &answered, with: Self.refusal)
        desk.advance(.seconds(1))
      }
      desk.deliver(desk.send(to: .user("good\(round)")))
      for _ in 0..<20 {
        answer(&desk, from: &answered, with: Self.refusal)
        desk.advance(.seconds(1))
      }
    }
    #expect(stops(desk) <= 3)
    #expect(desk.statuses.filter { $0.devices.allSatisfy { $0.outcome == .delivered } }.count == 21)
  }

  @Test func locallyRefusedProbeDoesNotCloseCircuit() {
    var desk = Desk()
    for user in ["a", "b"] { desk.register(user, .apns) }
    desk.deliver(desk.send(to: .user("a")))
    desk.answer(desk.pushes[0], Self.refusal)
    desk.deliver(desk.send(to: .user("b")))
    desk.advance(.seconds(16))
    desk.answer(desk.pushes[1], PushOutcome(.deviceGone, reason: "BadDeviceToken"))
    #expect(desk.circuit(0) != .closed)
  }

  @Test func unregisteredHandlesDoNotCountInUnregisterGuard() {
    var desk = Desk { $0.unregisterPolicy.minimumCount = 20 }
    for number in 0..<100 {
      desk.deliver(desk.send(to: .device(.fcm, handle: "invented-\(number)")))
      desk.answer(desk.pushes[number], PushOutcome(.deviceGone, reason: "UNREGISTERED", status: 404))
    }
    #expect(desk.alarms.allSatisfy { if case .unregisteringSuspended = $0 { false } else { true } })
    #expect(!desk.dispatcher.lanes[1].unregistering.isSuspended)
  }
}
