/// The settings of a ``Consumer``. Cooperative-sticky assignment and stored offsets are fixed.
package struct ConsumerConfiguration: Sendable {
  package var client: KafkaClientConfiguration
  /// The group. All its members must subscribe to the same topics; see ``Workarounds``.
  package var groupID: String
  package var topics: [String]
  /// A topic that the group does not assign: the member to which it assigns partition n of the first of ``topics`` also
  /// reads partition n of this one; see ``CompanionPartitions``.
  ///
  /// The sticky assignor balances the number of partitions of all topics together, so with two topics one member can
  /// get all partitions of one and none of the other.
  package var companionTopic: String?
  /// The topics that ``Consumer/setPaused(_:)`` pauses.
  package var pausableTopics: Set<String> = []
  /// The credit with which each assigned partition begins; ``Consumer/grant(records:of:)`` adds to it.
  /// Each partition then has a queue of its own, so that one without credit delays no other, and the limits of
  /// prefetching hold for each. nil: all partitions share the credit of ``Consumer/grant(records:)``.
  package var partitionCredit: Int?
  /// A name that survives restarts (static membership): a restart within `sessionTimeout` moves no
  /// partition.
  package var instanceID: String?
  /// Where reading starts when the group has no offset, or the offset no longer exists.
  package var start = Start.earliest
  /// A member that sends no heartbeat for this long loses its partitions.
  package var sessionTimeout: Duration
  package var heartbeatInterval: Duration
  /// The interval of commits of stored offsets, which also happen at revocations. nil for an
  /// application that commits by itself and stores nothing.
  package var autoCommitInterval: Duration?
  /// Whether an application that commits by itself keeps in a second group what its group cannot take (see
  /// ``InterimOffsets``), which costs a client.
  package var keepsInterimOffsets = true
  /// How long the application may take to complete a ``Rebalance``.
  /// Keep it short: during a revocation librdkafka fetches for no partition of this consumer.
  package var rebalanceDeadline: Duration = .milliseconds(1_500)
  package var commitTimeout: Duration = .seconds(5)
  /// The longest time from `close()` to the end, including the last rebalance.
  package var closeTimeout: Duration = .seconds(8)
  /// How long the broker holds a fetch without data.
  /// A real broker answers as soon as there is data; librdkafka's mock cluster always waits that long.
  package var fetchWait: Duration
  /// The most prefetched records of all partitions, and the same number again for pausable topics.
  /// A record costs a few hundred bytes in addition to its own.
  package var prefetchRecords = 10_000
  /// The most prefetched bytes of the same partitions.
  package var prefetchBytes = 4 * 1024 * 1024
  /// The most bytes of one partition in one fetch.
  package var fetchBytesPerPartition = 128 * 1024
  /// The most compressed bytes in one fetch, but at least one batch.
  /// Decompressed they are several times as many, in addition to `prefetchBytes`.
  package var fetchBytes = 1024 * 1024
  /// Whether headers are read, which costs a fraction of a microsecond per record.
  package var readsHeaders = true

  /// The defaults of `client.profile`.
  package init(client: KafkaClientConfiguration, groupID: String, topics: [String]) {
    self.client = client
    self.groupID = groupID
    self.topics = topics
    sessionTimeout = client.profile.sessionTimeout
    heartbeatInterval = client.profile.heartbeatInterval
    autoCommitInterval = client.profile.autoCommitInterval
    fetchWait = client.profile.fetchWait
  }

  /// Where reading starts without an offset.
  package enum Start: String, Sendable {
    /// At the oldest record, or at the next one to be produced.
    case earliest, latest
  }
}

extension ConsumerConfiguration {
  /// Keys that the configuration must not set, because the client depends on their values.
  static let reservedProperties: Set<String> = [
    "group.id", "group.instance.id", "group.protocol", "partition.assignment.strategy", "enable.auto.offset.store",
    "enable.auto.commit", "auto.offset.reset", "enable.partition.eof", "log.queue", "bootstrap.servers",
    "metadata.broker.list", "client.id",
  ]

  /// The properties of a consumer in the order in which they are set.
  var properties: PropertySet {
    var required =
      client.commonProperties + client.statisticsProperties + [
        Property("group.id", groupID),
        // A broker rejects a member with another assignor than the group's; librdkafka's mock cluster aborts.
        Property("partition.assignment.strategy", "cooperative-sticky"),
        Property("enable.auto.offset.store", "false"),
        Property("enable.auto.commit", autoCommitInterval == nil ? "false" : "true"),
        Property("auto.offset.reset", start.rawValue),
        Property("session.timeout.ms", "\(sessionTimeout.wholeMilliseconds)"),
        Property("heartbeat.interval.ms", "\(heartbeatInterval.wholeMilliseconds)"),
        Property("max.poll.interval.ms", "300000"),
        Property("fetch.wait.max.ms", "\(fetchWait.wholeMilliseconds)"),
        Property("queued.min.messages", "\(prefetchRecords)"),
        Property("queued.max.messages.kbytes", "\(max(1, prefetchBytes / 1024))"),
        Property("fetch.message.max.bytes", "\(fetchBytesPerPartition)"),
        // librdkafka requires that a fetch has room for a message of this size. A larger batch is fetched nevertheless.
        Property("message.max.bytes", "\(fetchBytes)"),
        Property("fetch.max.bytes", "\(fetchBytes)"),
        Property("check.crcs", "true"),
      ]
    if let autoCommitInterval {
      required.append(Property("auto.commit.interval.ms", "\(autoCommitInterval.wholeMilliseconds)"))
    }
    if let backoff = client.profile.fetchErrorBackoff {
      required.append(Property("fetch.error.backoff.ms", "\(backoff.wholeMilliseconds)"))
    }
    if let instanceID {
      // To a member that returns, a broker gives what it had before: never the partitions of a member without
      // companions.
      let name = companionTopic == nil ? instanceID : instanceID + ".2"
      required.append(Property("group.instance.id", name))
    }
    // The client's value is meant for producers.
    let further = client.properties.filter { $0.key != "message.max.bytes" }
    return PropertySet(
      required: required,
      ifSupported: [Workarounds.fetchBackoff, Property("enable.metrics.push", "false")],
      further: further,
      reserved: Self.reservedProperties,
      security: client.security, statistics: client.statistics
    )
  }
}
