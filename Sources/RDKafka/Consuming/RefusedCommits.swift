// What a consumer does where `ClusterProfile.acceptsCommitsDuringRebalance` is false.
//
// librdkafka's mock cluster begins a rebalance with the first member that joins again or leaves, and from then on
// refuses all commits until every member has its new assignment. A real cluster accepts commits until all members have
// joined.

/// How long a member delays its part of a rebalance, so that the commits of all members are
/// accepted.
///
/// Each member joins again or leaves only after the slowest member has settled the partitions that it gives back.
struct RebalanceDelay {
  /// Longer than a worker takes to settle its sends in flight, and well below the time that the
  /// mock cluster gives a member to join again (the session timeout less one second).
  private static let span: Duration = .milliseconds(2_500)

  private let isNeeded: Bool
  private var hasBeenAssigned = false
  private var until: ContinuousClock.Instant?

  init(isNeeded: Bool) {
    self.isNeeded = isNeeded
  }

  /// Notes that a new generation has assigned or revoked partitions, or changed nothing.
  mutating func begin(_ kind: ConsumerHandle.Change.Kind, isEmpty: Bool, at now: ContinuousClock.Instant) {
    guard isNeeded else { return }
    switch kind {
    // A new member does not know of others; if it gets partitions at once, no member has any to give back.
    case .assign where !hasBeenAssigned && !isEmpty: break
    case .assign, .revoke: until = now + Self.span
    case .lose: break
    }
    hasBeenAssigned = true
  }

  /// Whether the member must neither join again nor leave yet.
  func isActive(at now: ContinuousClock.Instant) -> Bool {
    until.map { now < $0 } ?? false
  }
}

/// Keeps offsets that the group refuses in a second group without members, which accepts commits at
/// any time.
///
/// The mock cluster can refuse commits from the generation on in which partitions are to be given back. A member whose
/// request for its assignment comes after the leader's gets none and joins again at once. Without the second group the
/// next owners would repeat the sends that members settle in that time.
final class RefusedOffsets: Sendable {
  private let handle: Handle
  private let timeout: Int32

  /// Creates the second group's client without contacting a broker.
  ///
  /// - Throws: `configuration`, naming the key.
  init(of configuration: ConsumerConfiguration) throws(RDKafkaError) {
    timeout = configuration.commitTimeout.timeoutMilliseconds
    let properties = PropertySet(
      required: configuration.client.commonProperties + [
        Property("group.id", configuration.groupID + ".refused"), Property("enable.auto.commit", "false"),
      ],
      ifSupported: [Property("enable.metrics.push", "false")], further: configuration.client.properties,
      reserved: ConsumerConfiguration.reservedProperties, security: configuration.client.security)
    handle = try Handle(kind: .consumer, properties: properties, events: 0, logsToQueue: false)
  }

  /// Returns when the broker has the offsets with their metadata.
  /// Throws `timedOut`, `unreachable`, `messageTooLarge`.
  func keep(_ offsets: [PartitionOffset]) async throws(RDKafkaError) {
    try await BlockingCalls.run { [handle, timeout] () throws(RDKafkaError) in
      try handle.commit(offsets, timeoutMilliseconds: timeout)
    }
  }

  /// The last kept offset of each partition; partitions without one are omitted.
  /// Throws `timedOut`, `unreachable`.
  func kept(_ partitions: [TopicPartition]) async throws(RDKafkaError) -> [PartitionOffset] {
    try await BlockingCalls.run { [handle, timeout] () throws(RDKafkaError) in
      try handle.committed(partitions, timeoutMilliseconds: timeout)
    }
  }
}
