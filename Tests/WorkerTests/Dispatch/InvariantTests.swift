import FanfareCore
import RDKafka
import Support
import Testing

@testable import Worker

/// The checks that `Desk` makes after every turn find states that the dispatcher never enters by itself.
struct InvariantTests {
  /// A desk with a send to Bob's phone, pushed and answered, whose status record is not acknowledged.
  private static func settlingDesk() -> Desk {
    var desk = Desk()
    desk.register("bob", .fcm)
    desk.acknowledges = false
    desk.deliver(desk.send(to: .user("bob")))
    desk.answerAll()
    return desk
  }

  private func finds(_ text: String, in violations: [String]) -> Bool { violations.contains { $0.contains(text) } }

  @Test func offsetSettledBeforeItsStatusIsAcknowledgedIsFound() throws {
    var desk = Self.settlingDesk()
    #expect(desk.violations() == [])
    let slot = try #require(desk.dispatcher.items.indices.first { desk.dispatcher.items[$0].phase == .settling })
    desk.dispatcher.partitions.settle(desk.dispatcher.items[slot].origin)
    #expect(finds("is settling, and its offset settled", in: desk.violations()))
    #expect(finds("has settled before its 1 records were acknowledged", in: desk.violations()))
  }

  @Test func itemConcludedBeforeItsStatusIsAcknowledgedIsFound() throws {
    var desk = Self.settlingDesk()
    let slot = try #require(desk.dispatcher.items.indices.first { desk.dispatcher.items[$0].phase == .settling })
    desk.dispatcher.conclude(slot)
    #expect(finds("has settled before its 1 records were acknowledged", in: desk.violations()))
  }

  @Test func offsetSettledInAnotherEpochIsFound() throws {
    var desk = Self.settlingDesk()
    let slot = try #require(desk.dispatcher.items.indices.first { desk.dispatcher.items[$0].phase == .settling })
    let former = desk.dispatcher.items[slot].origin
    desk.lose()
    desk.assign([Desk.partition])
    desk.deliver(desk.send(to: .user("bob")))
    let current = try #require(desk.dispatcher.items.first { $0.phase != .vacant }).origin
    #expect(current.sequence == former.sequence && current.epoch != former.epoch)
    desk.dispatcher.partitions.settle(former)
    #expect(desk.violations() == [], "the epoch protects the new assignment")
    desk.dispatcher.partitions.settle(Origin(slot: former.slot, epoch: current.epoch, sequence: former.sequence))
    #expect(finds("and its offset settled", in: desk.violations()))
  }

  @Test func creditBeyondTheLimitsIsFound() {
    var limits = WorkerConfiguration.Limits()
    limits.maximumRecords = 100
    var items = ItemTable(rememberedSends: 0)
    let granted = items.grantCredit(unresponsive: 0, spanAllows: true, limits: limits)
    #expect(granted == 100 && items.checkCredit(unresponsive: 0, limits: limits) == [])
    limits.maximumRecords = 99
    #expect(finds("exceeds the room of 99 records", in: items.checkCredit(unresponsive: 0, limits: limits)))
    (limits.maximumRecords, limits.maximumBytes) = (100, 10_000)
    #expect(finds("exceeds the room", in: items.checkCredit(unresponsive: 0, limits: limits)))
  }

  @Test func secondItemOfAKeyInItsFirstAttemptsIsFound() throws {
    var desk = Desk()
    desk.register("bob", .fcm)
    desk.deliver(desk.send(to: .user("bob")))
    desk.deliver(desk.send(to: .user("bob")))
    #expect(desk.violations() == [])
    let second = try #require(desk.dispatcher.items.indices.first { desk.dispatcher.items[$0].phase == .queued })
    desk.dispatcher.items[second].start()
    #expect(finds("is not the only one of its key in its first attempts", in: desk.violations()))
  }

  @Test func placeWithoutPushIsFound() throws {
    var desk = Desk()
    desk.register("bob", .fcm)
    desk.deliver(desk.send(to: .user("bob")))
    let ticket = Ticket(rawValue: try #require(desk.pushes.first).ticket)
    var other = desk
    desk.dispatcher.lanes.submitted(ticket, to: 1, at: desk.uptime)
    #expect(finds("lane 1 counts 2 unanswered pushes of 1", in: desk.violations()))
    // The device is not in flight any more, but its push is not answered.
    other.dispatcher.items[ticket.slot][device: ticket.device].enqueue()
    #expect(finds("lane 1 has 1 pushes, of 0 devices and 0 given up", in: other.violations()))
  }

  @Test func pushOfGivenUpItemHoldsItsPlaceUntilItIsAnswered() throws {
    var desk = Desk()
    desk.register("bob", .fcm)
    desk.deliver(desk.send(to: .user("bob")))
    desk.lose()
    #expect(desk.places.map(\.unanswered) == [0, 1, 0])
    #expect(desk.violations() == [])
    desk.answerAll()
    #expect(desk.places.map(\.unanswered) == [0, 0, 0])
  }
}
