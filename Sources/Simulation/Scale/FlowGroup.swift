/// The workers' consumer group: the classic protocol with cooperative-sticky assignment, as librdkafka performs it.
///
/// In a rebalance all members join again, each with its next heartbeat; one that is silent is waited for until its
/// session ends. A partition that is to move is given back first and assigned in the rebalance that follows.
/// The companion partitions move with the leading ones.
final class FlowGroup {
  enum Change {
    /// The partitions are read from now on.
    case assign([Int])
    /// The partitions are to be given back: call `released` when they are.
    case revoke([Int])
  }

  private struct Member {
    var isIn = false
    var isDead = false
    var partitions: [Int] = []
    /// Partitions that it was told to give back.
    var leaving: [Int] = []
  }

  private let world: World
  private let heartbeat: World.Time
  private let session: World.Time
  private let onChange: (_ member: Int, Change) -> Void
  private var members: [Member]
  private var free: [Int]
  private var isRunning = false
  private var isWanted = false
  private(set) var rebalances = 0
  /// How long the group was forming, in microseconds.
  private(set) var forming: World.Time = 0
  private var since: World.Time = 0

  init(
    members: Int, partitions: Int, heartbeat: World.Time, session: World.Time, in world: World,
    onChange: @escaping (_ member: Int, Change) -> Void
  ) {
    (self.world, self.heartbeat, self.session, self.onChange) = (world, heartbeat, session, onChange)
    self.members = Array(repeating: Member(), count: members)
    free = Array(0..<partitions)
  }

  /// Whether no rebalance is running or wanted.
  var isStable: Bool { !isRunning && !isWanted && members.allSatisfy { $0.leaving.isEmpty } }

  /// A group that has formed long ago.
  func settle() {
    for index in members.indices { members[index].isIn = true }
    assign()
  }

  func join(_ member: Int) {
    members[member].isDead = false
    guard !members[member].isIn else { return }
    members[member].isIn = true
    rebalance()
  }

  /// The member has given back everything and leaves.
  func leave(_ member: Int) {
    guard members[member].isIn else { return }
    free += members[member].partitions + members[member].leaving
    members[member] = Member()
    rebalance()
  }

  /// The member's heartbeats end. It is removed at the end of its session, unless it returns (`join`).
  func die(_ member: Int) {
    members[member].isDead = true
    world.after(session) { [self] in
      if members[member].isDead { leave(member) }
    }
  }

  /// The member has given back the partitions that it was told to.
  func released(_ member: Int) {
    free += members[member].leaving
    members[member].leaving = []
    rebalance()
  }

  private func rebalance() {
    isWanted = true
    guard !isRunning else { return }
    (isRunning, isWanted, since) = (true, false, world.now)
    // The last of many members hears of it a whole interval later.
    let count = Int64(max(1, members.count { $0.isIn && !$0.isDead }))
    world.after(heartbeat * count / (count + 1)) { [self] in gather() }
  }

  private func gather() {
    // A member joins again when it has given back its partitions.
    guard !members.contains(where: { $0.isIn && ($0.isDead || !$0.leaving.isEmpty) }) else {
      return world.after(.milliseconds(100)) { [self] in gather() }
    }
    isRunning = false
    rebalances += 1
    forming += world.now - since
    assign()
    if isWanted { rebalance() }
  }

  private func assign() {
    let all = members.indices.filter { members[$0].isIn }
    guard !all.isEmpty else { return }
    let count = free.count + all.reduce(0) { $0 + members[$1].partitions.count }
    // The members with most partitions keep the larger shares.
    let ordered = all.sorted { (-members[$0].partitions.count, $0) < (-members[$1].partitions.count, $1) }
    var unassigned = ArraySlice(free.sorted())
    var changes: [(Int, Change)] = []
    for (place, member) in ordered.enumerated() {
      let share = count / all.count + (place < count % all.count ? 1 : 0)
      let surplus = Array(members[member].partitions.dropFirst(share))
      if !surplus.isEmpty {
        members[member].partitions.removeLast(surplus.count)
        members[member].leaving = surplus
        changes.append((member, .revoke(surplus)))
      }
      let assigned = Array(unassigned.prefix(max(0, share - members[member].partitions.count)))
      guard !assigned.isEmpty else { continue }
      unassigned = unassigned.dropFirst(assigned.count)
      members[member].partitions += assigned
      changes.append((member, .assign(assigned)))
    }
    free = Array(unassigned)
    for (member, change) in changes { onChange(member, change) }
  }

  /// Each partition has one owner or none.
  func checkInvariants(partitions: Int) -> [String] {
    let owned = free + members.flatMap { $0.partitions + $0.leaving }
    return owned.count == partitions && Set(owned).count == partitions ? [] : ["a partition has not one owner"]
  }
}
