/// How a ``Consumer`` behaves. Cooperative-sticky assignment and offsets stored by hand are not negotiable and not
/// here.
package struct ConsumerConfiguration: Sendable {
  /// The cluster.
  package var client: KafkaClientConfiguration
  /// The group whose members share the topics' partitions. All members must subscribe to the same topics: librdkafka
  /// before 2.6.1 can spin forever on a mix.
  package var groupID: String
  /// The topics to read.
  package var topics: [String]
  /// Those of them that ``Consumer/setPaused(_:)`` keeps back.
  package var pausableTopics: Set<String> = []
  /// A name that survives restarts (static membership): a restart within `sessionTimeout` moves no partition. The
  /// embedded cluster ignores it.
  package var instanceID: String?
  /// Where a partition is read from when the group has no offset for it, or the offset no longer exists.
  package var start = Start.earliest
  /// A member silent for this long loses its partitions. The embedded cluster needs at least 4 s.
  package var sessionTimeout: Duration
  /// How often the member shows that it lives.
  package var heartbeatInterval: Duration
  /// Stored offsets are committed this often, and whenever partitions are given back. Nil: never, for an application
  /// that commits by itself and stores nothing.
  package var autoCommitInterval: Duration?
  /// How long the application may take to complete a ``Rebalance``. While a revocation is unanswered, librdkafka
  /// fetches for no partition of this consumer: keep it short.
  package var rebalanceDeadline: Duration = .milliseconds(1_500)
  /// How long a commit may take.
  package var commitTimeout: Duration = .seconds(5)
  /// From `close()` to the end, whatever the broker does; the last rebalance is included.
  package var closeTimeout: Duration = .seconds(8)
  /// How long the broker holds a fetch for which it has no data. A real one answers as soon as there is data, the
  /// embedded one never early: there it is the latency of an idle topic.
  package var fetchWait: Duration
  /// Prefetching stops at this many records ahead of the application, all partitions together (and once more those of
  /// topics that are held back apart); a record costs a few hundred bytes beyond its own.
  package var prefetchRecords = 10_000
  /// Prefetching stops at this many bytes ahead of the application, of as many partitions.
  package var prefetchBytes = 4 * 1024 * 1024
  /// Bytes of one partition in one fetch.
  package var fetchBytesPerPartition = 128 * 1024
  /// Bytes of all partitions in one fetch, as they are compressed; decompressed they are several times as many, and
  /// come on top of `prefetchBytes`. Never less than one whole batch.
  package var fetchBytes = 1024 * 1024
  /// Whether records carry their headers. Parsing them costs a fraction of a microsecond per record.
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

  /// Where to begin without an offset.
  package enum Start: String, Sendable {
    /// At the oldest record there is, or at what comes from now on.
    case earliest, latest
  }
}

extension ConsumerConfiguration {
  /// Keys that this target relies on: its promises would not hold with other values.
  static let reservedProperties: Set<String> = [
    "group.id", "group.instance.id", "group.protocol", "partition.assignment.strategy", "enable.auto.offset.store",
    "enable.auto.commit", "auto.offset.reset", "enable.partition.eof", "log.queue", "bootstrap.servers",
    "metadata.broker.list",
    "client.id",
  ]

  /// Whether librdkafka's debugging lines are read for what they say about joining; see `Membership`.
  var readsJoinStates: Bool { autoCommitInterval == nil }

  /// The properties of a consumer, in the order in which they are set.
  var properties: PropertySet {
    var required =
      client.commonProperties + [
        Property("group.id", groupID),
        // One member with another assignor in the group is rejected by a broker, and aborts the embedded cluster's
        // process.
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
        // librdkafka wants a fetch to have room for a message of this size, which means nothing else to a consumer; a
        // larger batch comes all the same.
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
    if let instanceID { required.append(Property("group.instance.id", instanceID)) }
    // A producer of the same client may be meant to make larger messages.
    var further = client.properties.filter { $0.key != "message.max.bytes" }
    // Whatever else is to be debugged: of several contexts each counts, also one that is named twice.
    if readsJoinStates { further["debug"] = client.properties["debug"].map { "\($0),cgrp" } ?? "cgrp" }
    return PropertySet(
      required: required,
      ifSupported: [
        // 2.2 and later: how long a partition whose prefetch is full stays out, instead of a second.
        Property("fetch.queue.backoff.ms", "20"),
        Property("enable.metrics.push", "false"),
      ],
      further: further,
      reserved: Self.reservedProperties
    )
  }
}
