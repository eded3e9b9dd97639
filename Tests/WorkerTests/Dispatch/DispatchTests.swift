import FanfareCore
import RDKafka
import Support
import Testing

@testable import Worker

struct DispatchTests {
  @Test func sendIsPushedReportedAndOnlyThenSettled() throws {
    var desk = Desk()
    desk.register("bob", .apns, .fcm)
    desk.acknowledges = false
    let send = desk.send(to: .user("bob"))
    desk.deliver(send)
    #expect(desk.pushes.map(\.handle).sorted() == ["bob-0", "bob-1"])
    #expect(desk.pushes.allSatisfy { $0.rendering.body == Array("\(send.id)".utf8) })
    #expect(desk.pushes.allSatisfy { $0.expiresAt == send.acceptedAt + .seconds(86_400) })
    desk.answer(desk.pushes[0], PushOutcome(.accepted, status: 200))
    #expect(desk.unacknowledged.isEmpty)
    desk.answer(desk.pushes[1], PushOutcome(.rejected, reason: "PayloadTooLarge", status: 413))
    #expect(desk.unacknowledged.count == 1)
    #expect(desk.unacknowledged[0].record.topic == "fanfare.status")
    #expect(desk.unacknowledged[0].record.key == Array("\(send.id)".utf8))
    #expect(desk.unacknowledged[0].record.partition == Desk.partition.partition)
    #expect(desk.position == nil)
    desk.acknowledge()
    #expect(desk.position == 1)
    #expect(desk.held.records == 0)
    #expect(desk.held.devices == 0)
    #expect(desk.takenPlaces == 0)
    let status = try #require(desk.statuses.first)
    #expect(status.send == send.id)
    #expect(status.state == .settled)
    #expect(status.devices.map(\.outcome) == [.delivered, .rejected])
    #expect(status.devices.map(\.reason) == ["", "PayloadTooLarge"])
    #expect(status.devices.map(\.attempts) == [1, 1])
  }

  @Test func offsetWaitsForAllRecordsBeforeItAndTheirAcknowledgement() {
    var desk = Desk()
    for user in ["a", "b", "c"] { desk.register(user, .fcm) }
    desk.acknowledges = false
    desk.deliver(desk.send(to: .user("a")), desk.send(to: .user("b")), desk.send(to: .user("c")))
    desk.answer(desk.pushes[2], PushOutcome(.accepted))
    desk.answer(desk.pushes[1], PushOutcome(.accepted))
    desk.acknowledge()
    #expect(desk.position == 0)
    desk.answer(desk.pushes[0], PushOutcome(.accepted))
    #expect(desk.position == 0)
    desk.acknowledge()
    #expect(desk.position == 3)
  }

  @Test func refusedStatusIsProducedUntilDurableBeforeSettling() {
    var desk = Desk()
    desk.register("bob", .fcm)
    desk.acknowledges = false
    desk.deliver(desk.send(to: .user("bob")))
    desk.answerAll()
    for code in [RDKafkaError.Code.queueFull, .possiblyPersisted, .unauthorized] {
      desk.acknowledge(RDKafkaError(code: code, message: "injected"))
      #expect(desk.unacknowledged.isEmpty)
      desk.advance(.seconds(6))
      #expect(desk.unacknowledged.count == 1)
      #expect(desk.position == nil)
    }
    #expect(desk.readinessProblems.map(\.text) == ["fanfare.status: unauthorized"])
    desk.acknowledge()
    #expect(desk.position == 1)
    #expect(desk.statuses.count == 1)
    #expect(desk.readinessProblems.isEmpty)
  }

  @Test func onlyRefusedRecordsOfBatchAreProducedAgain() {
    var desk = Desk()
    for user in ["a", "b", "c", "d"] { desk.register(user, .fcm) }
    desk.acknowledges = false
    let sends = ["a", "b", "c", "d"].map { desk.send(to: .user($0)) }
    for send in sends { desk.deliver(send) }
    desk.answerAll()
    #expect(desk.unacknowledged.count == 4)
    desk.acknowledge(RDKafkaError(code: .possiblyPersisted, message: "injected"), at: [1, 3])
    #expect(desk.statuses.map(\.send) == [sends[0].id, sends[2].id])
    #expect(desk.position == 1)
    desk.advance(.seconds(1))
    #expect(desk.unacknowledged.map(\.record.key) == [sends[1], sends[3]].map { Array("\($0.id)".utf8) })
    desk.acknowledge()
    #expect(desk.position == 4)
    #expect(desk.held.records == 0)
  }

  @Test func sendWithoutDevicesSettlesWithoutError() {
    var desk = Desk()
    desk.deliver(desk.send(to: .user("unregistered")))
    #expect(desk.statuses.map(\.state) == [.noTarget])
    #expect(desk.position == 1)
    #expect(desk.pushes.isEmpty)
  }

  @Test func platformWithoutContentIsNotLookedUp() {
    var desk = Desk()
    desk.register("bob", .fcm, .apns)
    desk.deliver(desk.send(to: .user("bob"), content: Content.of(apns: Array("{}".utf8))))
    #expect(desk.queries.map(\.platforms) == [PlatformSet(.apns)])
    #expect(desk.pushes.map(\.handle) == ["bob-1"])
  }

  @Test func unregisteredHandleIsPushedUnderDerivedID() throws {
    var desk = Desk()
    let audience = Audience.device(.apns, handle: "00FF")
    desk.deliver(
      desk.send(to: audience), desk.send(to: .device(.apns, handle: "00ff")),
      desk.send(to: .device(.fcm, handle: "00ff")))
    #expect(desk.pushes.map(\.handle) == ["00ff", "00ff", "00ff"])
    desk.answerAll(from: 0, PushOutcome(.deviceGone, reason: "Unregistered", status: 410))
    let ids = desk.statuses.flatMap(\.devices).map(\.registration)
    #expect(ids.count == 3)
    #expect(ids[0] == ids[1])
    #expect(ids[0] != ids[2])
    // There is nothing to drop.
    desk.advance(.seconds(2))
    #expect(desk.drops.isEmpty)
  }

  @Test func registeredHandleIsPushedByItsRegistration() {
    var desk = Desk()
    let target = Desk.target("abcd", .apns)
    desk.registry[.device(.apns, handle: "abcd")] = [target]
    desk.deliver(desk.send(to: .device(.apns, handle: "abcd")))
    desk.answerAll()
    #expect(desk.statuses.first?.devices.map(\.registration) == [target.registration])
  }

  @Test func renderingRefusalIsTheResultOfAllDevices() {
    let sender = ScriptedSender(.fcm)
    sender.setRefusal(PushOutcome(.rejected, reason: "PayloadTooLarge"))
    var desk = Desk(senders: [.default: [.fcm: sender]])
    desk.register("bob", .fcm, .fcm)
    desk.deliver(desk.send(to: .user("bob")))
    #expect(desk.pushes.isEmpty)
    #expect(desk.statuses.first?.devices.map(\.outcome) == [.rejected, .rejected])
    #expect(desk.statuses.first?.devices.map(\.attempts) == [0, 0])
  }

  @Test func largeSendIsPushedAsRoomAllowsAndReportedInParts() {
    var desk = Desk {
      $0.limits.maximumPushes = 64
      $0.limits.lookUpDevices = 10_000
      $0.devicesPerStatus = 1_000
    }
    desk.registry[.user("bob")] = (0..<10_000).map { Desk.target("device-\($0)", $0 % 2 == 0 ? .fcm : .apns) }
    let send = desk.send(to: .user("bob"))
    desk.deliver(send)
    var answered = 0
    while answered < desk.pushes.count {
      let next = desk.pushes.count
      desk.answerAll(from: answered)
      answered = next
    }
    #expect(desk.pushes.count == 10_000)
    #expect(Set(desk.pushes.map(\.handle)).count == 10_000)
    #expect(desk.mostPushes == 64)
    #expect(desk.statuses.map(\.part) == Array(0..<10))
    #expect(desk.statuses.allSatisfy { $0.parts == 10 && $0.attempt != nil && $0.attempt == desk.statuses[0].attempt })
    #expect(Set(desk.statuses.flatMap(\.devices).map(\.registration)).count == 10_000)
    #expect(desk.position == 1)
  }

  @Test func repeatedLargeSendIsReportedAsAnotherAttempt() throws {
    var desk = Desk { $0.devicesPerStatus = 2 }
    desk.registry[.user("bob")] = (0..<5).map { Desk.target("device-\($0)", .fcm) }
    desk.acknowledges = false
    let send = desk.send(to: .user("bob"))
    desk.deliver(send)
    desk.answerAll()
    let first = try desk.unacknowledged.map { try StatusRecord.decode($0.record.value[...]) }
    // The partition is lost with these pushes in flight, and assigned again after a device was unregistered.
    desk.lose()
    desk.assign([Desk.partition])
    desk.registry[.user("bob")]?.removeLast()
    desk.unacknowledged = Productions()
    desk.acknowledges = true
    let pushed = desk.pushes.count
    desk.deliver(send)
    desk.answerAll(from: pushed)
    #expect(first.map(\.parts) == [3, 3, 3])
    #expect(desk.statuses.map(\.parts) == [2, 2])
    #expect(Set((first + desk.statuses).map(\.attempt)).count == 2)
  }

  @Test func senderKeepsWithinItsShareOfPlaces() {
    var desk = Desk {
      $0.limits.maximumPushes = 100
      $0.limits.maximumPushesPerSender = 30
    }
    for number in 0..<200 { desk.register("user\(number)", number < 100 ? .apns : .fcm) }
    for number in 0..<200 { desk.deliver(desk.send(to: .user("user\(number)"))) }
    #expect(desk.places.map(\.inFlight) == [30, 30, 0])
    // A service that does not answer delays no other.
    let first = desk.pushes.filter {
      desk.device(of: $0)?.target.platform == .fcm
    }
    for push in first { desk.answer(push, PushOutcome(.accepted)) }
    #expect(desk.places.map(\.inFlight) == [30, 30, 0])
  }

  @Test func hubsAreIndependent() throws {
    let other = try #require(HubName("other"))
    var desk = Desk(senders: [.default: [.fcm: ScriptedSender(.fcm)], other: [.fcm: ScriptedSender(.fcm)]])
    desk.register("bob", .fcm)
    let send = desk.send(to: .user("bob"))
    let twin = SendRequest(
      id: send.id, hub: other, sender: nil, acceptedAt: send.acceptedAt, audience: send.audience, content: send.content)
    desk.deliver(send, twin)
    // The same id and user in another hub is another send to another user, through that hub's sender.
    #expect(desk.queries.map(\.hub) == [.default, other])
    #expect(desk.places.map(\.inFlight).filter { $0 > 0 } == [1, 1])
  }

  @Test func creditIsGrantedAsRoomAllows() {
    var desk = Desk {
      $0.limits.maximumRecords = 100
      $0.limits.maximumPushes = 10
    }
    #expect(desk.credit == 100)
    desk.register("bob", .fcm)
    for number in 0..<100 { desk.deliver(desk.send(to: .user("user\(number)"))) }
    // No device is registered, so all sends have settled and there is room again.
    #expect(desk.credit >= 190)
    desk.acknowledges = false
    let before = desk.credit
    for number in 0..<100 { desk.deliver(desk.send(to: .user("user\(number)"))) }
    #expect(desk.held.records + desk.outstandingCredit <= 100)
    #expect(desk.credit - before <= 10)
  }

  @Test func creditForLargeRecordsIsWhatFits() {
    var desk = Desk { $0.limits.maximumBytes = 64 * 1024 }
    desk.acknowledges = false
    let body = String(repeating: "x", count: 4096)
    for number in 0..<10 {
      desk.deliver(desk.send(to: .user("user\(number)"), content: Content(message: Message(title: "", body: body))))
    }
    #expect(
      (1...5).contains(desk.outstandingCredit),
      "\(desk.held.bytes) bytes of 65536 are held")
  }

  @Test func creditGrowsAfterLargeRecordAlthoughNothingSettles() {
    var desk = Desk()
    desk.acknowledges = false
    for number in 0..<64 { desk.deliver(desk.send(to: .user("user\(number)"))) }
    desk.useUpCredit()
    let body = String(repeating: "x", count: 480 * 1024)
    desk.deliver(desk.send(to: .user("user"), content: Content(message: Message(title: "", body: body))))
    #expect((1...8).contains(desk.outstandingCredit))
  }

  @Test func creditIsTakenBackWhenRecordsTurnOutLarge() {
    var desk = Desk()
    desk.acknowledges = false
    var taken = 64
    for number in 0..<taken { desk.deliver(desk.send(to: .user("user\(number)"))) }
    #expect(desk.credit - taken > 1000)
    let body = String(repeating: "x", count: 480 * 1024)
    while desk.credit > taken, taken < 100 {
      desk.deliver(desk.send(to: .user("user\(taken)"), content: Content(message: Message(title: "", body: body))))
      taken += 1
    }
    let limit = desk.configuration.limits.maximumBytes
    #expect(
      desk.held.bytes >= limit && desk.held.bytes < limit + 500 * 1024,
      "\(taken) records")
    // More were on their way: nothing is asked for until the books balance.
    desk.deliver(desk.send(to: .user("late"), content: Content(message: Message(title: "", body: body))))
    #expect(desk.credit == taken + 1 && desk.outstandingCredit == 0)
    desk.acknowledge()
    #expect(desk.held.bytes == 0 && desk.outstandingCredit > 0)
  }

  @Test func noCreditWithoutRoomForBytesDevicesOrOffsets() {
    func creditAfterOne(_ configure: (inout WorkerConfiguration) -> Void) -> Int {
      var desk = Desk {
        $0.limits.maximumRecords = 3
        configure(&$0)
      }
      desk.register("bob", .fcm)
      desk.acknowledges = false
      desk.deliver(desk.send(to: .user("bob")), desk.send(to: .user("unregistered")))
      desk.useUpCredit()
      let before = desk.credit
      desk.turn()
      return desk.credit - before
    }
    #expect(creditAfterOne { _ in } == 1)
    #expect(creditAfterOne { $0.limits.maximumBytes = 1 } == 0)
    #expect(creditAfterOne { $0.limits.maximumDevices = 1 } == 0)
    #expect(creditAfterOne { $0.limits.maximumSpan = 1 } == 0)
  }

  @Test func saturationIsThatOfTheFullestLimit() {
    func saturationAfterTwo(_ configure: (inout WorkerConfiguration) -> Void) -> Double {
      var desk = Desk(configure: configure)
      desk.register("bob", .fcm)
      desk.register("eve", .fcm)
      desk.deliver(desk.send(to: .user("bob")), desk.send(to: .user("eve")))
      defer {
        desk.answerAll()
        #expect(desk.saturation == 0)
      }
      return desk.saturation
    }
    #expect(saturationAfterTwo { $0.limits.maximumRecords = 16 } == 0.125)
    #expect(saturationAfterTwo { $0.limits.maximumPushes = 4 } == 0.5)
    #expect(saturationAfterTwo { $0.limits.maximumBytes = 65_536 } > 0)
    #expect(saturationAfterTwo { $0.limits.maximumBytes = 1 } == 1)
  }
}
