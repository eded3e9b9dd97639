import FanfareCore
import RDKafka
import Support
import Testing

@testable import Worker

/// A device belongs to the last user who logged in on it, also for pushes that were in flight when she did.
struct OwnershipTests {
  @Test func pushThatWaitedIsNotSentToNewOwner() {
    var desk = Desk { $0.limits.maximumPushes = 1 }
    desk.register("alice", .fcm)
    desk.register("bob", .fcm)
    desk.deliver(desk.send(to: .user("alice")), desk.send(to: .user("bob")))
    #expect(desk.pushes.map(\.handle) == ["alice-0"])
    desk.registry[.user("bob")] = []
    desk.advance(.milliseconds(300))
    desk.answer(desk.pushes[0], PushOutcome(.accepted))
    #expect(desk.pushes.count == 1)
    #expect(desk.statuses.count == 2)
    #expect(desk.statuses[1].devices.map(\.outcome) == [.rejected])
    #expect(desk.statuses[1].devices.map(\.reason) == ["NoLongerRegistered"])
    #expect(desk.statuses[1].devices.map(\.attempts) == [0])
    #expect(desk.takenPlaces == 0)
  }

  @Test func recentlyLookedUpDeviceIsPushedWithoutLookUp() {
    var desk = Desk { $0.limits.maximumPushes = 1 }
    desk.register("alice", .fcm)
    desk.register("bob", .fcm)
    desk.deliver(desk.send(to: .user("alice")), desk.send(to: .user("bob")))
    desk.advance(.milliseconds(250))
    desk.answer(desk.pushes[0], PushOutcome(.accepted))
    #expect(desk.pushes.count == 2)
    #expect(desk.queries.count == 2)
  }

  @Test func registryLatencyCountsTowardsOwnershipWindow() {
    var desk = Desk { $0.limits.maximumPushes = 1 }
    desk.register("alice", .fcm)
    desk.register("bob", .fcm)
    desk.deliver(desk.send(to: .user("alice")))
    desk.answersLookUps = false
    desk.deliver(desk.send(to: .user("bob")))
    desk.advance(.milliseconds(200))
    desk.answerLookUp()
    desk.advance(.milliseconds(51))
    desk.registry[.user("bob")] = []
    desk.answer(desk.pushes[0], PushOutcome(.accepted))
    #expect(desk.pushes.count == 1)
    #expect(desk.queries.count == 3)
    desk.answerLookUp()
    #expect(desk.statuses.last?.devices.map(\.reason) == ["NoLongerRegistered"])
  }

  @Test func slowRegistryAnswerCountsForItsMoment() {
    var desk = Desk { $0.limits.maximumPushes = 1 }
    desk.register("alice", .fcm)
    desk.register("bob", .fcm)
    desk.answersLookUps = false
    desk.deliver(desk.send(to: .user("alice")))
    desk.advance(.milliseconds(400))
    desk.answerLookUp()
    #expect(desk.pushes.map(\.handle) == ["alice-0"])
    // One that must wait after that is asked for once more, and then sent however long the answer took.
    desk.deliver(desk.send(to: .user("bob")))
    desk.advance(.milliseconds(400))
    desk.answerLookUp()
    desk.advance(.milliseconds(1))
    desk.answer(desk.pushes[0], PushOutcome(.accepted))
    desk.advance(.milliseconds(400))
    desk.answerLookUp()
    #expect(desk.pushes.map(\.handle) == ["alice-0", "bob-0"])
    #expect(desk.queries.count == 3)
  }

  @Test(arguments: [20, 200])
  func broadcastDeviceThatWaitedIsLookedUpAgain(devices: Int) {
    var desk = BroadcastTests.desk(devices: devices) {
      $0.limits.maximumPushes = 1
      ($0.circuit.patience, $0.circuit.silence) = (.seconds(600), .seconds(600))
    }
    _ = BroadcastTests.divided(&desk)
    BroadcastTests.begin(&desk)
    let targets = desk.registry.updateValue([], forKey: .tag("news")) ?? []
    for target in targets { desk.registry[.registration(target.registration)] = [] }
    desk.advance(.seconds(4))
    desk.answer(desk.pushes[0], PushOutcome(.accepted))
    #expect(desk.pushes.count == 2, "not for as long as it takes a page to get through its queue")
    desk.advance(.milliseconds(1))
    desk.answer(desk.pushes[1], PushOutcome(.accepted))
    #expect(desk.pushes.count == 2)
    #expect(desk.statuses.flatMap(\.devices).contains { $0.reason == "NoLongerRegistered" && $0.attempts == 0 })
  }

  @Test func sendBehindAnotherOfItsUserIsLookedUpInItsTurn() {
    var desk = Desk()
    desk.register("bob", .fcm)
    desk.deliver(desk.send(to: .user("bob")), desk.send(to: .user("bob")))
    desk.registry[.user("bob")] = []
    desk.answer(desk.pushes[0], PushOutcome(.accepted))
    #expect(desk.pushes.count == 1)
    #expect(desk.statuses.map(\.state) == [.settled, .noTarget])
  }

  @Test func repetitionUsesPresentHandleOrNone() {
    var desk = Desk()
    let first = Desk.target("old", .fcm)
    desk.registry[.user("bob")] = [first]
    desk.deliver(desk.send(to: .user("bob")))
    desk.answer(desk.pushes[0], PushOutcome(.unknown))
    desk.registry[.user("bob")] = [
      Target(registration: first.registration, platform: .fcm, handle: "new", registeredAt: desk.wall)
    ]
    desk.advance(.seconds(5))
    #expect(desk.pushes.map(\.handle) == ["old", "new"])
    #expect(desk.pushes[0].id == desk.pushes[1].id)
    desk.answer(desk.pushes[1], PushOutcome(.retryLater, retryAfter: .seconds(1)))
    desk.registry[.user("bob")] = []
    desk.advance(.seconds(5))
    #expect(desk.pushes.count == 2)
    #expect(desk.statuses.first?.devices.map(\.outcome) == [.rejected])
    #expect(desk.statuses.first?.devices.map(\.attempts) == [2])
  }

  @Test func rechecksLeaveQuarterOfRequestToNewSends() throws {
    var desk = Desk { $0.limits.lookUpBatch = 8 }
    for number in 0..<20 { desk.register("old-\(number)", .fcm) }
    for number in 0..<10 { desk.register("new-\(number)", .fcm) }
    for number in 0..<20 { desk.deliver(desk.send(to: .user("old-\(number)"))) }
    desk.answersLookUps = false
    desk.answerAll(PushOutcome(.retryLater, retryAfter: .seconds(1)))
    desk.advance(.seconds(2))
    for number in 0..<10 { desk.deliver(desk.send(to: .user("new-\(number)"))) }
    #expect(desk.openLookUp?.queries.count == 8, "nothing was new when it was asked")
    desk.answerLookUp()
    var asked: [Int] = []
    while let lookUp = desk.openLookUp {
      asked.append(lookUp.entries.count { $0.purpose == .devices })
      desk.answerLookUp()
    }
    #expect(asked == [2, 2, 6])
    #expect(desk.pushes.count == 50)
  }

  @Test func onlyRepeatedDeviceOfTagIsLookedUpAgain() {
    var desk = Desk()
    let targets = (0..<10).map { Desk.target("device-\($0)", .fcm) }
    desk.registry[.tag("news")] = targets
    desk.registry[.registration(targets[3].registration)] = [targets[3]]
    desk.deliver(desk.send(to: .tag("news")))
    for push in desk.pushes {
      desk.answer(
        push, ["device-3", "device-4"].contains(push.handle) ? PushOutcome(.unknown) : PushOutcome(.accepted))
    }
    desk.advance(.seconds(10))
    #expect(Set(desk.queries.map(\.audience)) == Set(targets[3...4].map { .registration($0.registration) }))
    #expect(desk.pushes.count == 11)
    desk.answer(desk.pushes[10], PushOutcome(.accepted))
    #expect(desk.statuses.first?.devices.map(\.outcome).filter { $0 == .delivered }.count == 9)
    #expect(
      desk.statuses.first?.devices.first { $0.registration == targets[4].registration }?.reason == "NoLongerRegistered")
  }

  @Test func tagPushIsNotRepeatedToNewOwner() {
    var desk = Desk()
    let targets = (0..<2).map { Desk.target("device-\($0)", .fcm) }
    desk.registry[.tag("news")] = targets
    for target in targets { desk.registry[.registration(target.registration)] = [target] }
    desk.deliver(desk.send(to: .tag("news")))
    desk.advance(.milliseconds(1))
    desk.createdAt[targets[0].registration] = desk.wall
    for push in desk.pushes { desk.answer(push, PushOutcome(.unknown)) }
    desk.advance(.seconds(10))
    #expect(desk.pushes.count == 3 && desk.pushes.last?.handle == "device-1")
    desk.answer(desk.pushes[2], PushOutcome(.accepted))
    #expect(
      desk.statuses.first?.devices.first { $0.reason == "NoLongerRegistered" }?.registration == targets[0].registration)
  }

  @Test func registryOutageSendsAndLosesNothing() {
    var desk = Desk()
    desk.register("bob", .fcm)
    desk.isRegistryDown = true
    desk.deliver(desk.send(to: .user("bob")), desk.send(to: .user("eve")))
    #expect(desk.readinessProblems.map(\.text) == ["the registry cannot be asked"])
    for _ in 0..<20 { desk.advance(.seconds(1)) }
    let asked = desk.queries.count
    #expect(asked < 30)
    #expect(desk.pushes.isEmpty)
    #expect(desk.statuses.isEmpty)
    desk.isRegistryDown = false
    desk.advance(.seconds(6))
    desk.answerAll()
    #expect(desk.statuses.count == 2)
    #expect(desk.position == 2)
    #expect(desk.readinessProblems.isEmpty)
  }

  @Test func placesReservedForLookUpAreReleased() {
    var desk = Desk { $0.limits.maximumPushes = 2 }
    for user in ["a", "b", "c", "d"] {
      desk.register(user, .fcm)
      desk.deliver(desk.send(to: .user(user)))
    }
    desk.advance(.seconds(1))
    desk.answersLookUps = false
    desk.answer(desk.pushes[0], PushOutcome(.accepted))
    desk.answer(desk.pushes[1], PushOutcome(.accepted))
    // Both places are reserved for pushes being checked.
    #expect(desk.takenPlaces == 2)
    #expect(desk.pushes.count == 2)
    desk.lose()
    #expect(desk.takenPlaces == 0)
    desk.answerLookUp()
    #expect(desk.pushes.count == 2)
    #expect(desk.takenPlaces == 0)
  }
}
