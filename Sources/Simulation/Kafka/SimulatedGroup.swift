import RDKafka

/// The model of a consumer group and its coordinator: classic protocol, cooperative-sticky assignment.
///
/// `@unchecked Sendable`: see `World`.
final class SimulatedGroup: @unchecked Sendable {
  /// A position that was kept while the group took none, and the group's position that it continues.
  struct Interim {
    let base: Int64?
    let offset: PartitionOffset
  }

  /// A member as the coordinator knows it.
  private final class Member {
    let consumer: SimulatedConsumer
    var partitions: Set<Int32> = []
    /// Since when it has sent no heartbeat; nil while it does.
    var silentSince: World.Time?
    /// Whether it has asked to join again in the running rebalance.
    var isJoining = false

    init(_ consumer: SimulatedConsumer) {
      self.consumer = consumer
    }
  }

  let id: String
  private let topic: String
  private let cluster: SimulatedCluster
  private var members: [Member] = []
  private var isRebalancing = false
  private(set) var positions: [TopicPartition: PartitionOffset] = [:]
  private(set) var interim: [TopicPartition: Interim] = [:]

  private var world: World { cluster.world }

  init(_ id: String, topic: String, in cluster: SimulatedCluster) {
    self.id = id
    self.topic = topic
    self.cluster = cluster
    sweep()
  }

  // Members.

  func join(_ consumer: SimulatedConsumer) {
    guard !members.contains(where: { $0.consumer === consumer }) else { return }
    members.append(Member(consumer))
    rebalance()
  }

  func leave(_ consumer: SimulatedConsumer) {
    guard members.contains(where: { $0.consumer === consumer }) else { return }
    members.removeAll { $0.consumer === consumer }
    rebalance()
  }

  func isMember(_ consumer: SimulatedConsumer) -> Bool { members.contains { $0.consumer === consumer } }

  /// Whether the member has asked to join again: a commit of it would arrive in the wrong generation.
  func isJoining(_ consumer: SimulatedConsumer) -> Bool {
    members.first { $0.consumer === consumer }?.isJoining ?? false
  }

  /// Once a second: removes members that are silent for longer than their session.
  private func sweep() {
    world.after(.seconds(1)) { [self] in
      var hasExpelled = false
      for member in members {
        guard !member.consumer.isReachable else {
          member.silentSince = nil
          continue
        }
        let since = member.silentSince ?? world.now
        member.silentSince = since
        guard world.now - since >= member.consumer.sessionTimeout else { continue }
        members.removeAll { $0 === member }
        member.consumer.expel()
        hasExpelled = true
        world.trace.note(world.now, "\(id) expels \(member.consumer.name)")
      }
      if hasExpelled { rebalance() }
      sweep()
    }
  }

  // Rebalances.

  /// A member has given back partitions, joined or left: all join again.
  func rebalance() {
    guard !isRebalancing else { return }
    isRebalancing = true
    for member in members {
      // Members hear of it with their next heartbeat.
      world.after(world.random(0...(.seconds(1)))) { member.isJoining = true }
    }
    world.after(.seconds(1)) { [self] in gather() }
  }

  /// The coordinator waits for all members; one that is silent is waited for until its session ends.
  private func gather() {
    guard members.allSatisfy({ $0.consumer.isReachable && !$0.consumer.isRevoking }) else {
      return world.after(.milliseconds(250)) { [self] in gather() }
    }
    isRebalancing = false
    for member in members { member.isJoining = false }
    assign()
  }

  /// Cooperative-sticky: a member keeps its partitions up to its share. The others are revoked first, and assigned in
  /// the rebalance that follows.
  private func assign() {
    guard !members.isEmpty else { return }
    let count = cluster.partitions(of: topic)
    var free = Set((0..<Int32(count)))
    for member in members { free.subtract(member.partitions) }
    var changes: [(Member, revoked: [Int32], assigned: [Int32])] = []
    // The members with most partitions keep the larger shares.
    let ordered = members.enumerated().sorted {
      ($1.element.partitions.count, $0.offset) < ($0.element.partitions.count, $1.offset)
    }.map(\.element)
    var unassigned = free.sorted()
    for (place, member) in ordered.enumerated() {
      let share = count / members.count + (place < count % members.count ? 1 : 0)
      let owned = member.partitions.sorted()
      let revoked = Array(owned.dropFirst(share))
      let assigned = Array(unassigned.prefix(max(0, share - owned.count)))
      unassigned.removeFirst(assigned.count)
      changes.append((member, revoked, assigned))
    }
    for (member, revoked, assigned) in changes {
      member.partitions.subtract(revoked)
      member.partitions.formUnion(assigned)
      if !revoked.isEmpty || !assigned.isEmpty {
        world.trace.note(world.now, "\(id): \(member.consumer.name) +\(assigned) -\(revoked)")
      }
      member.consumer.change(assigned: assigned, revoked: revoked)
    }
  }

  // Positions.

  func commit(_ offsets: [PartitionOffset]) {
    for offset in offsets {
      let former = positions[offset.partition]
      positions[offset.partition] = offset
      // The next commit clears an interim position.
      interim[offset.partition] = nil
      cluster.onCommit(id, offset, former)
    }
  }

  func keep(_ offset: PartitionOffset, base: Int64?) {
    interim[offset.partition] = Interim(base: base, offset: offset)
  }
}
