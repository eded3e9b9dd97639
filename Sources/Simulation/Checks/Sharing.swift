import RDKafka

/// Checks how the members of groups share partitions.
///
/// `@unchecked Sendable`: see `World`.
final class Sharing: @unchecked Sendable {
  private struct Key: Hashable {
    let group: String
    let partition: Int32
  }

  /// The member to which each partition was assigned last.
  private var owners: [Key: String] = [:]
  private(set) var checks = 0
  /// Told about everything that is wrong.
  var violate: (String) -> Void = { _ in }

  /// A rebalance has ended. `isAtRest`: no member has to give back partitions, so none follows.
  func assigned(_ group: String, _ members: [(name: String, partitions: Set<Int32>)], of count: Int, isAtRest: Bool) {
    checks += 1
    var seen: Set<Int32> = []
    for member in members {
      for partition in member.partitions.sorted() {
        if !seen.insert(partition).inserted { violate("\(group): partition \(partition) has two owners") }
        owners[Key(group: group, partition: partition)] = member.name
      }
    }
    guard isAtRest, !members.isEmpty else { return }
    if seen.count < count { violate("\(group): \(count - seen.count) partitions have no owner") }
    let shares = members.map(\.partitions.count)
    if (shares.max() ?? 0) - (shares.min() ?? 0) > 1 { violate("\(group): the shares are \(shares.sorted())") }
  }

  /// The group has taken a commit of a member: the partition, or its leading one, must be the member's.
  func committed(_ group: String, _ partition: TopicPartition, by member: String) {
    checks += 1
    let owner = owners[Key(group: group, partition: partition.partition)]
    if owner != member { violate("\(group): \(member) commits \(partition), whose owner is \(owner ?? "not known")") }
  }
}
