/// The settings of a ``Producer``.
/// `acks=all`, idempotence and Java's murmur2 partitioner are fixed.
package struct ProducerConfiguration: Sendable {
  package var client: KafkaClientConfiguration
  /// How long a record waits for others to share its batch: less CPU for more latency.
  package var linger = Self.standardLinger
  package static let standardLinger: Duration = .microseconds(500)
  /// A batch of this size is sent without waiting.
  package var batchBytes = 262_144
  package var compression = Compression.lz4
  /// The longest time from `send` to failure, including retries.
  /// With a few seconds librdkafka before 2.3 reports fatal errors more often after a temporary broker error.
  package var deliveryTimeout: Duration
  /// How long a broker may take to answer one request.
  package var requestTimeout: Duration = .seconds(5)
  /// The most records held, including those in flight; beyond it `send` fails with `queueFull`.
  package var queueRecords = 100_000
  /// The most bytes held, including those in flight; beyond it `send` fails with `queueFull`.
  /// librdkafka's default is 1 GiB.
  package var queueBytes = 64 * 1024 * 1024
  /// The largest record, key and headers included; a larger one fails with `messageTooLarge`.
  package var maximumRecordBytes = 1_000_000
  /// Whether records fail at once with `unreachable` while the client knows that it reaches no broker.
  /// Otherwise they wait for one, at most ``deliveryTimeout``.
  package var refusesWhileUnreachable = false
  /// How long the producer flushes when `run()` is cancelled instead of closed.
  package var closeTimeout: Duration = .seconds(5)

  /// The defaults of `client.profile`, which suit a front end.
  /// Where no caller waits for single records, use a `linger` of 10 to 50 ms.
  package init(client: KafkaClientConfiguration) {
    self.client = client
    deliveryTimeout = client.profile.deliveryTimeout
  }

  /// The codecs, by librdkafka's names.
  package enum Compression: String, Sendable, CaseIterable {
    case none, lz4, zstd, snappy, gzip
  }
}

extension ProducerConfiguration {
  /// Keys that the configuration must not set, because the client depends on their values.
  static let reservedProperties: Set<String> = [
    "acks", "request.required.acks", "enable.idempotence", "partitioner", "sticky.partitioning.linger.ms",
    "transactional.id", "log.queue", "bootstrap.servers", "metadata.broker.list", "client.id",
    "enable.gapless.guarantee",
    "delivery.report.only.error", "produce.offset.report", "delivery.timeout.ms", "message.timeout.ms",
  ]

  /// The properties of a producer in the order in which they are set.
  var properties: PropertySet {
    PropertySet(
      required: client.commonProperties + client.statisticsProperties + [
        Property("acks", "all"),
        Property("enable.idempotence", "true"),
        // Otherwise librdkafka does not call the topic's partitioner for records without a key.
        Property("sticky.partitioning.linger.ms", "0"),
        Property("linger.ms", "\(linger / .milliseconds(1))"),
        Property("batch.size", "\(batchBytes)"),
        Property("compression.codec", compression.rawValue),
        Property("delivery.timeout.ms", "\(deliveryTimeout.wholeMilliseconds)"),
        Property("request.timeout.ms", "\(requestTimeout.wholeMilliseconds)"),
        Property("queue.buffering.max.messages", "\(queueRecords)"),
        Property("queue.buffering.max.kbytes", "\(max(1, queueBytes / 1024))"),
        Property("message.max.bytes", "\(maximumRecordBytes)"),
      ],
      // KIP-714: otherwise librdkafka 2.5 and later sends client metrics to the broker.
      ifSupported: [Property("enable.metrics.push", "false")],
      further: client.properties,
      reserved: Self.reservedProperties,
      security: client.security, statistics: client.statistics
    )
  }
}
