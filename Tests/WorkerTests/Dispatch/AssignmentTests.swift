import FanfareCore
import RDKafka
import Support
import Testing

@testable import Worker

struct AssignmentTests {
  @Test func assignmentTakesEffectAtOnce() {
    let completions = Completions()
    var desk = Desk(assign: false)
    #expect(desk.dispatcher.readinessProblems.map(\.text) == ["no partition has been assigned yet"])
    desk.turn { $0.dispatcher.assign([Desk.partition], completions.rebalance(), at: $0.now, into: &$1) }
    #expect(completions.count == 1)
    #expect(desk.dispatcher.readinessProblems.isEmpty)
  }

  @Test func revokedPartitionSettlesInFlightThenIsReleased() {
    let completions = Completions()
    var desk = Desk { $0.limits.maximumPushes = 2 }
    for user in ["a", "b", "c"] { desk.register(user, .fcm) }
    desk.acknowledges = false
    desk.deliver(
      desk.send(to: .user("a")), desk.send(to: .user("b")), desk.send(to: .user("c")), desk.send(to: .user("a")))
    #expect(desk.pushes.count == 2)
    desk.turn { desk, _ in desk.dispatcher.revoke([Desk.partition], completions.rebalance(), at: desk.now) }
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
    #expect(desk.dispatcher.items.held.records == 0)
    #expect(desk.dispatcher.items.hasNoLanes)
    #expect(desk.dispatcher.lanes.pushes == 0)
  }

  @Test func inFlightWorkIsGivenUpAtDeadlineAndCommitsNothing() {
    let completions = Completions()
    var desk = Desk()
    for user in ["a", "b"] { desk.register(user, .fcm) }
    desk.deliver(desk.send(to: .user("a")), desk.send(to: .user("b")))
    desk.answer(desk.pushes[0], PushOutcome(.accepted))
    #expect(desk.position == 1)
    desk.turn { desk, _ in desk.dispatcher.revoke([Desk.partition], completions.rebalance(), at: desk.now) }
    desk.advance(.milliseconds(2_900))
    #expect(completions.count == 0)
    #expect(desk.workLeft.isEmpty)
    desk.advance(.milliseconds(100))
    #expect(completions.count == 1)
    #expect(desk.workLeft == [1])
    // The partition is assigned to this worker again, and its record is done again.
    desk.turn { $0.dispatcher.assign([Desk.partition], completions.rebalance(), at: $0.now, into: &$1) }
    desk.answer(desk.pushes[1], PushOutcome(.accepted), from: 1)
    #expect(desk.position == 1)
    #expect(desk.statuses.count == 1)
    #expect(desk.dispatcher.lanes.pushes == 0)
  }

  @Test func drainOutlivingRevocationKeepsNextAssignment() {
    let completions = Completions()
    var desk = Desk()
    for user in ["a", "b"] { desk.register(user, .fcm) }
    desk.deliver(desk.send(to: .user("a")))
    // A process that was stopped for long hears of both at once.
    desk.turn { desk, _ in desk.dispatcher.revoke([Desk.partition], completions.rebalance(), at: desk.now) }
    desk.turn { $0.dispatcher.assign([Desk.partition], completions.rebalance(), at: $0.now, into: &$1) }
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
    desk.turn { desk, _ in desk.dispatcher.revoke([Desk.partition], completions.rebalance(), at: desk.now) }
    desk.advance(.seconds(3))
    #expect(completions.count == 1)
    // What only waited had not begun.
    #expect(desk.workLeft == [1])
    // The partition is assigned to this worker again while the first push has no answer yet.
    desk.turn { $0.dispatcher.assign([Desk.partition], completions.rebalance(), at: $0.now, into: &$1) }
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
    #expect(desk.dispatcher.items.held.records == 0)
    #expect(desk.dispatcher.items.hasNoLanes)
  }

  @Test func restingDeviceDoesNotDelayRevocation() {
    let completions = Completions()
    var desk = Desk()
    desk.register("a", .fcm)
    desk.deliver(desk.send(to: .user("a")))
    desk.answer(desk.pushes[0], PushOutcome(.retryLater))
    desk.turn { desk, _ in desk.dispatcher.revoke([Desk.partition], completions.rebalance(), at: desk.now) }
    #expect(completions.count == 1)
    #expect(desk.position == nil)
    #expect(desk.dispatcher.items.held.records == 0)
    desk.advance(.seconds(60))
    #expect(desk.pushes.count == 1)
  }

  @Test func otherPartitionsContinueDuringRevocation() {
    let completions = Completions()
    let other = TopicPartition(topic: "fanfare.sends", partition: 1)
    var desk = Desk()
    desk.turn { $0.dispatcher.assign([other], completions.rebalance(), at: $0.now, into: &$1) }
    for user in ["a", "b"] { desk.register(user, .fcm) }
    desk.deliver(desk.send(to: .user("a")), from: Desk.partition)
    desk.turn { desk, _ in desk.dispatcher.revoke([Desk.partition], completions.rebalance(), at: desk.now) }
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
    desk.turn { $0.dispatcher.lose([Desk.partition], completions.rebalance(), into: &$1) }
    #expect(completions.count == 1)
    desk.acknowledge()
    #expect(desk.position == nil)
    #expect(desk.dispatcher.items.held.records == 0)
    // The second send was pushed by then; its answer only frees the place.
    desk.answer(desk.pushes[1], PushOutcome(.accepted), from: 1)
    #expect(desk.dispatcher.lanes.pushes == 0)
    #expect(desk.unacknowledged.isEmpty)
  }

  @Test func shutdownSettlesInFlightThenWorkerMayLeave() {
    let completions = Completions()
    var desk = Desk { $0.limits.maximumPushes = 1 }
    for user in ["a", "b"] { desk.register(user, .fcm) }
    desk.deliver(desk.send(to: .user("a")), desk.send(to: .user("b")))
    let credit = desk.credit
    desk.turn { desk, _ in desk.dispatcher.shutDown(at: desk.now) }
    #expect(!desk.isToLeave)
    desk.deliver(desk.send(to: .user("b")))
    #expect(desk.credit == credit)
    desk.answer(desk.pushes[0], PushOutcome(.accepted))
    #expect(desk.isToLeave)
    #expect(desk.position == 1)
    #expect(desk.pushes.count == 1)
    desk.turn { desk, _ in desk.dispatcher.revoke([Desk.partition], completions.rebalance(), at: desk.now) }
    #expect(completions.count == 1)
  }

  @Test func shutdownGivesUpAtDeadline() {
    var desk = Desk()
    desk.register("a", .fcm)
    desk.deliver(desk.send(to: .user("a")))
    desk.turn { desk, _ in desk.dispatcher.shutDown(at: desk.now) }
    desk.advance(.seconds(19))
    #expect(!desk.isToLeave)
    desk.advance(.seconds(1))
    #expect(desk.isToLeave)
    #expect(desk.position == nil)
  }

  @Test func sendInTwoPartitionsSurvivesLossOfOne() {
    let other = TopicPartition(topic: "fanfare.sends", partition: 1)
    var desk = Desk()
    desk.turn { $0.dispatcher.assign([other], Rebalance {}, at: $0.now, into: &$1) }
    desk.register("a", .fcm)
    let send = desk.send(to: .user("a"))
    desk.deliver(send, from: Desk.partition)
    desk.deliver(send, from: other)
    desk.turn { $0.dispatcher.lose([Desk.partition], Rebalance {}, into: &$1) }
    desk.answer(desk.pushes[0], PushOutcome(.accepted))
    #expect(desk.group.mapValues(\.offset) == [other: 1])
    #expect(desk.statuses.count == 1)
  }
}
