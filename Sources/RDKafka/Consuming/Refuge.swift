/// Keeps the positions that a group on the embedded cluster refuses, under the name of a group that nobody joins and
/// that therefore takes them at any time.
///
/// The embedded cluster refuses every position from the moment a member joins again until all have their new
/// assignment; a real one takes them until all have joined. It can even begin to do so with the generation in which
/// partitions are to be given back: a member whose request for its assignment comes after the leader's is left without
/// and joins again at once. What members settle in such a time would be done again by the next owners, had they not the
/// refuge to look into.
final class Refuge: Sendable {
  private let handle: Handle
  private let timeout: Int32

  /// Makes the refuge of the configuration's group; contacts no broker yet.
  ///
  /// - Throws: `configuration`, naming the key.
  init(of configuration: ConsumerConfiguration) throws(RDKafkaError) {
    timeout = configuration.commitTimeout.timeoutMilliseconds
    let properties = PropertySet(
      required: configuration.client.commonProperties + [
        Property("group.id", configuration.groupID + ".refused"), Property("enable.auto.commit", "false"),
      ],
      ifSupported: [Property("enable.metrics.push", "false")], further: configuration.client.properties,
      reserved: ConsumerConfiguration.reservedProperties)
    handle = try Handle(kind: .consumer, properties: properties, events: 0, logsToQueue: false)
  }

  /// Returns when the broker has the positions with their metadata. Throws `timedOut`, `unreachable`,
  /// `messageTooLarge`.
  func keep(_ offsets: [PartitionOffset]) async throws(RDKafkaError) {
    try await BlockingCalls.run { [handle, timeout] () throws(RDKafkaError) in
      try handle.commit(offsets, timeoutMilliseconds: timeout)
    }
  }

  /// The last positions kept of each of the partitions; those of which none was are left out. Throws `timedOut`,
  /// `unreachable`.
  func kept(_ partitions: [TopicPartition]) async throws(RDKafkaError) -> [PartitionOffset] {
    try await BlockingCalls.run { [handle, timeout] () throws(RDKafkaError) in
      try handle.committed(partitions, timeoutMilliseconds: timeout)
    }
  }
}
