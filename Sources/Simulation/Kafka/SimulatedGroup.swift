import RDKafka

/// The model of a consumer group at its coordinator: classic protocol, cooperative-sticky assignment, static members.
///
/// It acts when a request of a member arrives; see `SimulatedCluster.request`. Members and positions survive
/// a change of the coordinator, requests to join do not.
///
/// `@unchecked Sendable`: see `World`.
final class SimulatedGroup: @unchecked Sendable {
  /// The errors with which a coordinator refuses requests, by the protocol's numbers.
  enum Refusal: Int32 {
    case metadataTooLarge = 12
    case notCoordinator = 16
    case illegalGeneration = 22
    case unknownMember = 25
    case rebalancing = 27
    case fencedInstance = 82

    func error(_ context: String) -> RDKafkaError { RDKafkaError(number: rawValue, context: context) }
  }

  /// A member's name for itself in its requests. `id` is nil before it has joined.
  struct Identity: Hashable {
    var id: Int?
    /// The name that survives restarts; nil: a dynamic member.
    var instance: String?
    var generation: Int32 = -1
  }

  struct JoinRequest {
    let identity: Identity
    let process: String
    let topic: String
    /// The partitions that it owns.
    let owned: Set<Int32>
    let sessionTimeout: World.Time
  }

  struct Assignment {
    let id: Int
    let generation: Int32
    let partitions: Set<Int32>
  }

  typealias JoinReply = (Result<Assignment, RDKafkaError>) -> Void

  /// A member as the coordinator knows it.
  private final class Member {
    var id: Int
    let instance: String?
    var process: String
    let sessionTimeout: World.Time
    var partitions: Set<Int32> = []
    var heardAt: World.Time
    /// Its last request to join, while it is not answered.
    var request: (JoinRequest, JoinReply)?

    init(_ id: Int, _ request: JoinRequest, at now: World.Time) {
      self.id = id
      instance = request.identity.instance
      process = request.process
      sessionTimeout = request.sessionTimeout
      heardAt = now
    }
  }

  /// The most bytes of metadata that a broker keeps with a position.
  private static let metadataLimit = 4_096
  /// How long the first members of a group are waited for.
  private static let initialDelay: World.Time = .seconds(3)
  /// How long members that are alive are waited for: `max.poll.interval.ms`.
  private static let rebalanceTimeout: World.Time = .seconds(300)

  let id: String
  private let cluster: SimulatedCluster
  private(set) var coordinator: Int
  private(set) var downUntil: World.Time = 0
  private var topic = ""
  private var members: [Member] = []
  private var lastID = 0
  private var generation: Int32 = 0
  /// Since when members join; nil: the group is stable.
  private var rebalancingSince: World.Time?
  /// Until when further members are waited for.
  private var joinableUntil: World.Time = 0
  private(set) var positions: [TopicPartition: PartitionOffset] = [:]
  /// When it has formed: its members' clients send no commits then.
  private var formations: [ClosedRange<World.Time>] = []

  private var world: World { cluster.world }

  init(_ id: String, on coordinator: Int, in cluster: SimulatedCluster) {
    self.id = id
    self.coordinator = coordinator
    self.cluster = cluster
  }

  /// Another broker becomes the coordinator, once it has read what the group has.
  func move(to broker: Int, until time: World.Time) {
    coordinator = broker
    downUntil = max(downUntil, time)
    for member in members {
      // Their sessions begin again.
      member.heardAt = downUntil
      member.request?.1(.failure(Refusal.notCoordinator.error("join")))
      member.request = nil
    }
    if !members.isEmpty { rebalancingSince = rebalancingSince ?? world.now }
  }

  /// From when on a commit succeeds that becomes due at that moment, as far as the group matters.
  func takesCommits(since moment: World.Time) -> World.Time {
    if let rebalancingSince, rebalancingSince <= moment { return world.now }
    return formations.last { $0.contains(moment) }?.upperBound ?? moment
  }

  /// The partitions without an owner while the group is stable.
  var unowned: Set<Int32> {
    guard rebalancingSince == nil, !members.isEmpty else { return [] }
    return Set(0..<Int32(cluster.partitions(of: topic))).subtracting(members.flatMap(\.partitions))
  }

  // Members.

  func join(_ request: JoinRequest, reply: @escaping JoinReply) {
    if members.isEmpty, lastID == 0 {
      topic = request.topic
      joinableUntil = world.now + Self.initialDelay
      sweep()
    }
    let (id, instance) = (request.identity.id, request.identity.instance)
    if let instance, let member = members.first(where: { $0.instance == instance }), member.id != id {
      guard id == nil else { return reply(.failure(Refusal.fencedInstance.error("join"))) }
      return replace(member, by: request, reply)
    }
    let member: Member
    if let id {
      guard let known = members.first(where: { $0.id == id }) else {
        return reply(.failure(Refusal.unknownMember.error("join")))
      }
      member = known
    } else {
      lastID += 1
      member = Member(lastID, request, at: world.now)
      members.append(member)
    }
    member.heardAt = world.now
    member.request = (request, reply)
    rebalance()
  }

  /// A process with the instance's name takes the place of the one before, which is fenced. A stable group does not
  /// notice.
  private func replace(_ member: Member, by request: JoinRequest, _ reply: @escaping JoinReply) {
    member.request?.1(.failure(Refusal.fencedInstance.error("join")))
    lastID += 1
    member.id = lastID
    member.process = request.process
    member.heardAt = world.now
    world.trace.note(world.now, "\(id): \(request.process) replaces \(request.identity.instance ?? "")")
    guard rebalancingSince == nil else {
      member.request = (request, reply)
      return advance()
    }
    member.request = nil
    reply(.success(Assignment(id: member.id, generation: generation, partitions: member.partitions)))
  }

  func leave(_ identity: Identity) {
    guard let index = members.firstIndex(where: { $0.id == identity.id }) else { return }
    members.remove(at: index)
    rebalance()
  }

  /// Returns how the member's request is refused; nil: it is not.
  private func check(_ identity: Identity) -> Refusal? {
    if let instance = identity.instance,
      let member = members.first(where: { $0.instance == instance }), member.id != identity.id
    {
      return .fencedInstance
    }
    guard let member = members.first(where: { $0.id == identity.id }) else { return .unknownMember }
    member.heardAt = world.now
    return identity.generation == generation ? nil : .illegalGeneration
  }

  func heartbeat(_ identity: Identity) -> Refusal? {
    check(identity) ?? (rebalancingSince == nil ? nil : .rebalancing)
  }

  /// Twice a second: removes members that are silent for longer than their session.
  private func sweep() {
    world.after(.milliseconds(500)) { [self] in
      let now = world.now
      // A request to join is open as long as its connection.
      let isLate = rebalancingSince.map { now - $0 > Self.rebalanceTimeout } ?? false
      let expelled = members.filter {
        $0.request == nil && downUntil <= now && (isLate || now - $0.heardAt >= $0.sessionTimeout)
      }
      for member in expelled { world.trace.note(now, "\(id) expels \(member.process)") }
      if !expelled.isEmpty {
        members.removeAll { member in expelled.contains { $0 === member } }
        rebalance()
      }
      advance()
      sweep()
    }
  }

  // Rebalances.

  /// A member joins, leaves or is removed: all join again. They hear of it with their next heartbeat.
  private func rebalance() {
    rebalancingSince = rebalancingSince ?? world.now
    advance()
  }

  /// Ends the rebalance when all members have joined.
  private func advance() {
    guard let since = rebalancingSince, world.now >= joinableUntil, downUntil <= world.now else { return }
    guard members.allSatisfy({ $0.request != nil }) else { return }
    formations.append(since...world.now)
    rebalancingSince = nil
    generation += 1
    assign()
  }

  /// Cooperative-sticky: a member keeps the partitions that it owns, up to its share. What it has beyond that it has to
  /// give back first; it is assigned in the rebalance that follows.
  private func assign() {
    guard !members.isEmpty else { return }
    let count = cluster.partitions(of: topic)
    var owned: [Int: Set<Int32>] = [:]
    var taken: Set<Int32> = []
    // A member whose answers were lost believes in an older generation. Its partitions are its own unless a later
    // generation has given them to another one.
    let claims = members.compactMap { member in member.request.map { (member.id, $0.0) } }
    for (id, request) in claims.sorted(by: { $0.1.identity.generation > $1.1.identity.generation }) {
      owned[id] = request.owned.subtracting(taken)
      taken.formUnion(request.owned)
    }
    var free = (0..<Int32(count)).filter { !taken.contains($0) }
    // The members with most partitions keep the larger shares.
    let ordered = members.enumerated().sorted {
      (owned[$1.element.id]?.count ?? 0, $0.offset) < (owned[$0.element.id]?.count ?? 0, $1.offset)
    }.map(\.element)
    var isAtRest = true
    for (place, member) in ordered.enumerated() {
      let share = count / members.count + (place < count % members.count ? 1 : 0)
      let kept = (owned[member.id] ?? []).sorted()
      let added = free.prefix(max(0, share - kept.count))
      free.removeFirst(added.count)
      member.partitions = Set(kept.prefix(share)).union(added)
      isAtRest = isAtRest && kept.count <= share
      let revoked = Array(kept.dropFirst(share))
      if !revoked.isEmpty || !added.isEmpty {
        world.note(.assigned(topic, to: member.process, Array(added), revoked: revoked))
      }
    }
    cluster.sharing.assigned(id, members.map { (owner($0), $0.partitions) }, of: count, isAtRest: isAtRest)
    for member in members {
      guard let (_, reply) = member.request else { continue }
      member.request = nil
      member.heardAt = world.now
      reply(.success(Assignment(id: member.id, generation: generation, partitions: member.partitions)))
    }
  }

  /// The name of a member that a restart does not change if it is static.
  private func owner(_ member: Member) -> String { member.instance ?? "\(member.process) \(member.id)" }

  // Positions.

  /// A member commits.
  func commit(_ offsets: [PartitionOffset], of identity: Identity) -> Refusal? {
    if let refusal = check(identity) { return refusal }
    if let member = members.first(where: { $0.id == identity.id }) {
      for offset in offsets { cluster.sharing.committed(id, offset.partition, by: owner(member)) }
    }
    return store(offsets)
  }

  /// A client commits that is no member, which a group without members takes.
  func store(_ offsets: [PartitionOffset]) -> Refusal? {
    guard offsets.allSatisfy({ $0.metadata?.utf8.count ?? 0 <= Self.metadataLimit }) else { return .metadataTooLarge }
    for offset in offsets {
      let former = positions.updateValue(offset, forKey: offset.partition)
      if lastID > 0 {
        cluster.onCommit(id, offset, former)
      } else {
        world.trace.note(
          world.now, "\(id) keeps \(offset.partition) \(offset.offset) \(offset.metadata ?? "")")
      }
    }
    return nil
  }
}
