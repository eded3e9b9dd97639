import FanfareCore
import RDKafka
import Testing

@testable import Worker

/// Partitions that are added to the sends topic: a user's later sends come from another one.
struct AddedPartitionTests {
  private static let added = TopicPartition(topic: "fanfare.sends", partition: 4)

  /// A desk that owned a partition, and gets an added one while a send of bob is in flight.
  private func desk() -> (Desk, SendRequest) {
    var desk = Desk()
    desk.register("bob", .fcm)
    let first = desk.send(to: .user("bob"))
    desk.deliver(first)
    desk.assign([Self.added])
    return (desk, first)
  }

  @Test func orderOfUserIsKeptWithinWorker() {
    var (desk, _) = desk()
    desk.deliver(desk.send(to: .user("bob")), from: Self.added)
    #expect(desk.pushes.count == 1, "the later send waits for the earlier one of the other partition")
    desk.answerAll()
    #expect(desk.pushes.count == 2)
    desk.answerAll(from: 1)
    #expect(desk.position == 1 && desk.group[Self.added]?.offset == 1)
  }

  @Test func recordInBothPartitionsIsPushedOnce() {
    var (desk, first) = desk()
    desk.deliver(first, from: Self.added)
    desk.answerAll()
    #expect(desk.pushes.count == 1)
    #expect(desk.position == 1 && desk.group[Self.added]?.offset == 1)
    // Also after it has settled.
    desk.deliver(first, from: Self.added)
    #expect(desk.pushes.count == 1 && desk.group[Self.added]?.offset == 2)
  }

  @Test func oldPartitionSettlesAfterTheMove() {
    var (desk, _) = desk()
    desk.revoke()
    desk.deliver(desk.send(to: .user("bob")), from: Self.added)
    desk.answerAll()
    #expect(desk.position == 1, "what was in flight is committed before the partition is given back")
    desk.answerAll(from: 1)
    #expect(desk.group[Self.added]?.offset == 1)
  }
}
