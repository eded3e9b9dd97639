import Logging

/// The client of the group of ``InterimOffsets``, which joins nothing.
struct InterimGroup: PositionStore {
  private let handle: Handle
  private let timeout: Int32

  /// Creates the client without contacting a broker.
  ///
  /// - Throws: `configuration`, naming the key.
  fileprivate init(_ name: String, of configuration: ConsumerConfiguration) throws(RDKafkaError) {
    // Half of it: the members of the group wait for the answer before they read.
    timeout = (configuration.commitTimeout / 2).timeoutMilliseconds
    let properties = PropertySet(
      required: configuration.client.commonProperties + [
        Property("group.id", name), Property("enable.auto.commit", "false"),
      ],
      ifSupported: [Property("enable.metrics.push", "false")], further: configuration.client.silentProperties,
      reserved: ConsumerConfiguration.reservedProperties, security: configuration.client.security)
    handle = try Handle(kind: .consumer, properties: properties, events: 0, logsToQueue: false)
  }

  func commit(_ offsets: [PartitionOffset]) async throws(RDKafkaError) {
    try await BlockingCalls.run { [handle, timeout] () throws(RDKafkaError) in
      try handle.commit(offsets, timeoutMilliseconds: timeout)
    }
  }

  func beginCommit(_ offsets: [PartitionOffset]) throws(RDKafkaError) {
    try handle.beginCommit(offsets)
  }

  func committed(_ partitions: [TopicPartition]) async throws(RDKafkaError) -> [PartitionOffset] {
    try await BlockingCalls.run { [handle, timeout] () throws(RDKafkaError) in
      try handle.committed(partitions, timeoutMilliseconds: timeout)
    }
  }
}

extension InterimOffsets {
  /// The interim offsets of a consumer's group, with a client of their own.
  ///
  /// - Throws: `configuration`, naming the key.
  convenience init(of configuration: ConsumerConfiguration, logger: Logger) throws(RDKafkaError) {
    let group = configuration.interimGroup
    self.init(group: group, store: try InterimGroup(group, of: configuration), logger: logger)
  }
}

extension ConsumerConfiguration {
  /// The group of ``InterimOffsets``.
  package var interimGroup: String { groupID + ".interim" }
}
