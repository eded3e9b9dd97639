import RDKafka

/// The model of librdkafka's side of the group protocol: joins, heartbeats, the member's own end of its session.
///
/// `@unchecked Sendable`: see `World`.
final class SimulatedMember: @unchecked Sendable {
  private let configuration: ConsumerConfiguration
  private let process: SimulatedProcess
  private let cluster: SimulatedCluster
  let group: SimulatedGroup
  private(set) var identity: SimulatedGroup.Identity
  /// The partitions that it reads for the group.
  private var owned: Set<Int32> = []
  /// The partitions that the coordinator has given it, whether or not it reads them yet.
  private var assigned: Set<Int32> = []
  /// Whether it has asked to join and is not answered; see `JoinState`.
  private(set) var isJoining = false
  /// Whether others may own its partitions.
  private(set) var hasLostAssignment = false
  private var mustJoin = false
  private var isOver = false
  private var heardAt: World.Time = 0
  /// Told what it reads from now on, and what no more.
  var onChange: (Rebalances.Change) -> Void = { _ in }
  /// Told that another process has its instance's name. It does nothing more then.
  var onFenced: () -> Void = {}
  /// Whether changes have not taken effect yet: it joins again when they have.
  var isBusy: () -> Bool = { false }

  private var world: World { cluster.world }
  private var sessionTimeout: World.Time { World.Time(configuration.sessionTimeout) }

  init(_ configuration: ConsumerConfiguration, of process: SimulatedProcess, in cluster: SimulatedCluster) {
    self.configuration = configuration
    self.process = process
    self.cluster = cluster
    group = cluster.group(configuration.groupID)
    identity = SimulatedGroup.Identity(instance: configuration.instanceID)
  }

  func start() {
    mustJoin = true
    advance()
    beat()
  }

  /// Asks to join when it must and nothing is in the way.
  func advance() {
    guard mustJoin, !isJoining, !isOver, !isBusy() else { return }
    mustJoin = false
    isJoining = true
    let request = SimulatedGroup.JoinRequest(
      identity: identity, process: process.name, topic: configuration.topics[0], owned: owned,
      sessionTimeout: sessionTimeout)
    ask { group, reply in
      group.join(request, reply: reply)
    } answer: { [self] result in
      switch result {
      case .success(let assignment): take(assignment)
      case .failure(let error): refused(error.number)
      case nil: again()
      }
    }
  }

  private func again() {
    process.after(.milliseconds(500)) { [self] in
      // The request is repeated, and no commit is sent until it is answered.
      isJoining = false
      mustJoin = true
      advance()
    }
  }

  private func take(_ assignment: SimulatedGroup.Assignment) {
    guard !isOver else { return }
    isJoining = false
    hasLostAssignment = false
    identity.id = assignment.id
    identity.generation = assignment.generation
    heardAt = world.now
    let revoked = owned.subtracting(assignment.partitions)
    let added = assignment.partitions.subtracting(owned)
    assigned = assignment.partitions
    if !revoked.isEmpty { mustJoin = true }
    // librdkafka announces assignments without partitions, too.
    if !revoked.isEmpty { onChange(change(.revoke, revoked)) }
    onChange(change(.assign, added))
    advance()
  }

  private func change(_ kind: Rebalances.Change.Kind, _ numbers: Set<Int32>) -> Rebalances.Change {
    Rebalances.Change(
      kind: kind, partitions: numbers.sorted().map { TopicPartition(topic: configuration.topics[0], partition: $0) })
  }

  /// A change of the group's partitions has taken effect.
  func applied(_ change: Rebalances.Change) {
    let numbers = change.partitions.filter { $0.topic == configuration.topics[0] }.map(\.partition)
    if change.kind == .assign { owned.formUnion(numbers) } else { owned.subtract(numbers) }
  }

  private func beat() {
    process.after(World.Time(configuration.heartbeatInterval)) { [self] in
      guard !isOver else { return }
      beat()
      guard identity.id != nil, !isJoining, !hasLostAssignment else { return }
      // Without answers it finds out by itself that its session is over.
      guard world.now - heardAt < sessionTimeout else { return lose() }
      let asked = identity
      ask { group, reply in
        reply(group.heartbeat(asked))
      } answer: { [self] (refusal: SimulatedGroup.Refusal??) in
        guard asked == identity, let refusal else { return }
        if let refusal { refused(refusal.rawValue) } else { heardAt = world.now }
      }
    }
  }

  /// The coordinator has refused a request.
  private func refused(_ number: Int32) {
    guard !isOver else { return }
    switch SimulatedGroup.Refusal(rawValue: number) {
    case .fencedInstance:
      isOver = true
      onFenced()
    case .rebalancing:
      heardAt = world.now
      mustJoin = true
      advance()
    case .illegalGeneration, .unknownMember:
      isJoining = false
      lose()
    default: again()
    }
  }

  /// The member has left its group without asking: it joins as a new one.
  private func lose() {
    guard !hasLostAssignment else { return }
    hasLostAssignment = true
    // A static member keeps the name by which the coordinator knows it.
    identity.id = nil
    identity.generation = -1
    if !assigned.isEmpty { onChange(change(.lose, assigned)) }
    assigned = []
    mustJoin = true
    advance()
  }

  /// Ends the membership. Only a dynamic member tells the coordinator.
  func leave() {
    guard !isOver else { return }
    isOver = true
    guard configuration.instanceID == nil, identity.id != nil else { return }
    let leaving = identity
    ask { group, reply in
      group.leave(leaving)
      reply(())
    } answer: { (_: Void?) in
    }
  }

  /// A request to the coordinator.
  func ask<Answer>(
    _ carryOut: @escaping (SimulatedGroup, _ reply: @escaping (Answer) -> Void) -> Void,
    answer: @escaping (Answer?) -> Void
  ) {
    let (group, cluster) = (group, cluster)
    cluster.request(of: process, to: { cluster.coordinator(of: group) }, { carryOut(group, $0) }, answer: answer)
  }
}
