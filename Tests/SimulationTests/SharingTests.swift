import RDKafka
import Testing

@testable import Simulation

/// A check that finds nothing must be one that can find something.
struct SharingTests {
  private let sharing = Sharing()
  private let found = Found()
  private let partition = TopicPartition(topic: "t", partition: 2)

  /// `@unchecked Sendable`: used by one test, on its thread.
  private final class Found: @unchecked Sendable {
    var texts: [String] = []
  }

  init() {
    sharing.violate = { [found] in found.texts.append($0) }
  }

  private func assign(_ first: Set<Int32>, _ second: Set<Int32>, isAtRest: Bool = true) {
    sharing.assigned("g", [("one", first), ("two", second)], of: 4, isAtRest: isAtRest)
  }

  @Test func evenSharesAreFine() {
    assign([0, 1], [2, 3])
    sharing.committed("g", partition, by: "two")
    #expect(found.texts.isEmpty && sharing.checks == 2)
  }

  @Test func unevenSharesAreFound() {
    assign([0], [1, 2, 3])
    #expect(found.texts == ["g: the shares are [1, 3]"])
  }

  @Test func sharesMayBeUnevenUntilPartitionsAreGivenBack() {
    assign([0], [1, 2, 3], isAtRest: false)
    #expect(found.texts.isEmpty)
  }

  @Test func partitionWithoutOwnerIsFound() {
    assign([0, 1], [2])
    #expect(found.texts == ["g: 1 partitions have no owner"])
  }

  @Test func partitionWithTwoOwnersIsFound() {
    assign([0, 1, 2], [2, 3])
    #expect(found.texts == ["g: partition 2 has two owners"])
  }

  @Test func commitOfAnotherMemberIsFound() {
    assign([0, 1], [2, 3])
    sharing.committed("g", partition, by: "one")
    #expect(found.texts == ["g: one commits t[2], whose owner is two"])
  }

  @Test func partitionThatIsGivenBackIsStillItsOwners() {
    assign([0, 1], [2, 3])
    assign([0, 1], [3], isAtRest: false)
    sharing.committed("g", partition, by: "two")
    #expect(found.texts.isEmpty)
  }
}
