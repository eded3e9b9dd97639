import FanfareCore
import RDKafka
import Support
import Testing

@testable import Worker

struct AssignmentTests {
  @Test func assignmentTakesEffectAtOnce() {
    let completions = Completions()
    var desk = Desk(assign: false)
    #expect(desk.readinessProblems.map(\.text) == ["no partition has been assigned yet"])
    desk.assign([Desk.partition], completions.rebalance())
    #expect(completions.count == 1)
    #expect(desk.readinessProblems.isEmpty)
  }

  @Test func revokedPartitionSettlesInFlightThenIsReleased() {
    let completions = Completions()
    var desk = Desk { $0.limits.maximumPushes = 2 }
    for user in ["a", "b", "c"] { desk.register(user, .fcm) }
    desk.acknowledges = false
    desk.deliver(
      desk.send(to: .user("a")), desk.send(to: .user("b")), desk.send(to: .user("c")), desk.send(to: .user("a")))
    #expect(desk.pushes.count == 2)
    desk.revoke([Desk.partition], completions.rebalance())
    #expect(completions.count == 0)
    desk.answer(desk.pushes[0], PushOutcome(.accepted))
    desk.answer(desk.pushes[1], PushOutcome(.accepted))
    #expect(completions.count == 0)
    #expect(desk.position == nil)
    desk.acknowledge()
    // Only when Kafka has the status records, with the position stored first.
    #expect(completions.count == 1)
    #expect(desk.position == 2)
    #expect(desk.pushes.count == 2)
    #expect(desk.held.records == 0)
    #expect(desk.hasNoLanes)
    #expect(desk.takenPlaces == 0)
  }

  @Test func inFlightWorkIsGivenUpAtDeadlineAndCommitsNothing() {
    let completions = Completions()
    var desk = Desk()
    for user in ["a", "b"] { desk.register(user, .fcm) }
    desk.deliver(desk.send(to: .user("a")), desk.send(to: .user("b")))
    desk.answer(desk.pushes[0], PushOutcome(.accepted))
    #expect(desk.position == 1)
    desk.revoke([Desk.partition], completions.rebalance())
    desk.advance(.milliseconds(2_900))
    #expect(completions.count == 0)
    #expect(desk.workLeft.isEmpty)
    desk.advance(.milliseconds(100))
    #expect(completions.count == 1)
    #expect(desk.workLeft == [1])
    // The partition is assigned to this worker again, and its record is done again.
    desk.assign([Desk.partition], completions.rebalance())
    desk.answer(desk.pushes[1], PushOutcome(.accepted), from: 1)
    #expect(desk.position == 1)
    #expect(desk.statuses.count == 1)
    #expect(desk.takenPlaces == 0)
  }

  @Test func drainOutlivingRevocationKeepsNextAssignment() {
    let completions = Completions()
    var desk = Desk()
    for user in ["a", "b"] { desk.register(user, .fcm) }
    desk.deliver(desk.send(to: .user("a")))
    // A process that was stopped for long hears of both at once.
    desk.revoke([Desk.partition], completions.rebalance())
    desk.assign([Desk.partition], completions.rebalance())
    desk.advance(.seconds(5))
    #expect(completions.count == 2)
    desk.deliver(desk.send(to: .user("b")))
    #expect(desk.pushes.count == 2)
  }

  @Test func givenUpWaitingPushIsDoneAgain() {
    let completions = Completions()
    // No silence of the service lets the younger one go ahead.
    var desk = Desk { $0.circuit.patience = .seconds(60) }
    desk.register("a", .fcm)
    let older = desk.send(to: .user("a"))
    let younger = desk.send(to: .user("a"))
    desk.deliver(older, younger)
    #expect(desk.pushes.count == 1)
    desk.revoke([Desk.partition], completions.rebalance())
    desk.advance(.seconds(3))
    #expect(completions.count == 1)
    // What only waited had not begun.
    #expect(desk.workLeft == [1])
    // The partition is assigned to this worker again while the first push has no answer yet.
    desk.assign([Desk.partition], completions.rebalance())
    desk.deliver(older, younger)
    desk.answer(desk.pushes[0], PushOutcome(.accepted), from: 1)
    // The answer of the old push counts for nothing, and each send is pushed once more, in its turn.
    #expect(desk.statuses.isEmpty)
    for number in 1...2 {
      #expect(desk.pushes.count == number + 1)
      desk.answer(desk.pushes[number], PushOutcome(.accepted))
      #expect(desk.statuses.count == number)
    }
    #expect(desk.pushes[1...].map(\.rendering.body) == [older, younger].map { Array("\($0.id)".utf8) })
    #expect(desk.statuses.map(\.send) == [older.id, younger.id])
    #expect(desk.position == 4)
    #expect(desk.held.records == 0)
    #expect(desk.hasNoLanes)
  }

  @Test func restingDeviceDoesNotDelayRevocation() {
    let completions = Completions()
    var desk = Desk()
    desk.register("a", .fcm)
    desk.deliver(desk.send(to: .user("a")))
    desk.answer(desk.pushes[0], PushOutcome(.retryLater))
    desk.revoke([Desk.partition], completions.rebalance())
    #expect(completions.count == 1)
    #expect(desk.position == nil)
    #expect(desk.held.records == 0)
    desk.advance(.seconds(60))
    #expect(desk.pushes.count == 1)
  }

  @Test func otherPartitionsContinueDuringRevocation() {
    let completions = Completions()
    let other = TopicPartition(topic: "fanfare.sends", partition: 1)
    var desk = Desk()
    desk.assign([other], completions.rebalance())
    for user in ["a", "b"] { desk.register(user, .fcm) }
    desk.deliver(desk.send(to: .user("a")), from: Desk.partition)
    desk.revoke([Desk.partition], completions.rebalance())
    desk.deliver(desk.send(to: .user("b")), from: other)
    #expect(desk.pushes.count == 2)
    desk.answer(desk.pushes[1], PushOutcome(.accepted))
    #expect(desk.group[other]?.offset == 1)
    #expect(completions.count == 1)
    desk.answer(desk.pushes[0], PushOutcome(.accepted))
    #expect(completions.count == 2)
    #expect(desk.position == 1)
  }

  @Test func lostPartitionCommitsNothingAndIsReleasedAtOnce() {
    let completions = Completions()
    var desk = Desk()
    desk.register("a", .fcm)
    desk.acknowledges = false
    desk.deliver(desk.send(to: .user("a")), desk.send(to: .user("a")))
    desk.answer(desk.pushes[0], PushOutcome(.accepted))
    desk.lose([Desk.partition], completions.rebalance())
    #expect(completions.count == 1)
    desk.acknowledge()
    #expect(desk.position == nil)
    #expect(desk.held.records == 0)
    // The second send was pushed by then; its answer only frees the place.
    desk.answer(desk.pushes[1], PushOutcome(.accepted), from: 1)
    #expect(desk.takenPlaces == 0)
    #expect(desk.unacknowledged.isEmpty)
  }

  @Test func shutdownSettlesInFlightThenWorkerMayLeave() {
    let completions = Completions()
    var desk = Desk { $0.limits.maximumPushes = 1 }
    for user in ["a", "b"] { desk.register(user, .fcm) }
    desk.deliver(desk.send(to: .user("a")), desk.send(to: .user("b")))
    let credit = desk.credit
    desk.shutDown()
    #expect(!desk.isToLeave)
    desk.deliver(desk.send(to: .user("b")))
    #expect(desk.credit == credit)
    desk.answer(desk.pushes[0], PushOutcome(.accepted))
    #expect(desk.isToLeave)
    #expect(desk.position == 1)
    #expect(desk.pushes.count == 1)
    desk.revoke([Desk.partition], completions.rebalance())
    #expect(completions.count == 1)
  }

  @Test func shutdownGivesUpAtDeadline() {
    var desk = Desk()
    desk.register("a", .fcm)
    desk.deliver(desk.send(to: .user("a")))
    desk.shutDown()
    desk.advance(.seconds(19))
    #expect(!desk.isToLeave)
    desk.advance(.seconds(1))
    #expect(desk.isToLeave)
    #expect(desk.position == nil)
  }

  @Test func sendInTwoPartitionsSurvivesLossOfOne() {
    let other = TopicPartition(topic: "fanfare.sends", partition: 1)
    var desk = Desk()
    desk.assign([other])
    desk.register("a", .fcm)
    let send = desk.send(to: .user("a"))
    desk.deliver(send, from: Desk.partition)
    desk.deliver(send, from: other)
    desk.lose()
    desk.answer(desk.pushes[0], PushOutcome(.accepted))
    #expect(desk.group.mapValues(\.offset) == [other: 1])
    #expect(desk.statuses.count == 1)
  }
}
