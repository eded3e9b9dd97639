/// How a ``Producer`` behaves. `acks=all`, idempotence and Java's murmur2 partitioner are not negotiable and not here.
package struct ProducerConfiguration: Sendable {
  /// The cluster.
  package var client: KafkaClientConfiguration
  /// How long a record waits for others to share a batch with. Longer: larger batches, less CPU, more latency.
  package var linger: Duration = .milliseconds(2)
  /// At this many bytes a batch is sent without waiting further.
  package var batchBytes = 262_144
  /// How batches are compressed.
  package var compression = Compression.lz4
  /// From `send` to giving up, retries included. Values of a few seconds make librdkafka before 2.3 report fatal errors
  /// after a broker's hiccup more often.
  package var deliveryTimeout: Duration
  /// How long a broker may take to answer one request.
  package var requestTimeout: Duration = .seconds(5)
  /// Records held at most, in flight included; beyond it `send` fails with `queueFull`.
  package var queueRecords = 100_000
  /// Bytes held at most, in flight included; beyond it `send` fails with `queueFull`. (librdkafka's own default is 1
  /// GiB.)
  package var queueBytes = 64 * 1024 * 1024
  /// The largest record, key and headers included; a larger one fails with `messageTooLarge`.
  package var maximumRecordBytes = 1_000_000
  /// How long the producer flushes when its `run()` is cancelled instead of being closed.
  package var closeTimeout: Duration = .seconds(5)

  /// The defaults of `client.profile`; they suit a front end. Where nobody waits for a single record use a `linger` of
  /// 10 to 50 ms.
  package init(client: KafkaClientConfiguration) {
    self.client = client
    deliveryTimeout = client.profile.deliveryTimeout
  }

  /// The codec of a batch.
  package enum Compression: String, Sendable, CaseIterable {
    /// librdkafka's names of the codecs.
    case none, lz4, zstd, snappy, gzip
  }
}

extension ProducerConfiguration {
  /// Keys that this target relies on: its promises would not hold with other values.
  static let reservedProperties: Set<String> = [
    "acks", "request.required.acks", "enable.idempotence", "partitioner", "sticky.partitioning.linger.ms",
    "transactional.id",
    "log.queue", "bootstrap.servers", "metadata.broker.list", "client.id", "enable.gapless.guarantee",
    "delivery.report.only.error", "produce.offset.report", "delivery.timeout.ms", "message.timeout.ms",
  ]

  /// The properties of a producer, in the order in which they are set.
  var properties: PropertySet {
    PropertySet(
      required: client.commonProperties + [
        Property("acks", "all"),
        Property("enable.idempotence", "true"),
        // Else librdkafka places records without a key without asking the topic's partitioner.
        Property("sticky.partitioning.linger.ms", "0"),
        Property("linger.ms", "\(linger.wholeMilliseconds)"),
        Property("batch.size", "\(batchBytes)"),
        Property("compression.codec", compression.rawValue),
        Property("delivery.timeout.ms", "\(deliveryTimeout.wholeMilliseconds)"),
        Property("request.timeout.ms", "\(requestTimeout.wholeMilliseconds)"),
        Property("queue.buffering.max.messages", "\(queueRecords)"),
        Property("queue.buffering.max.kbytes", "\(max(1, queueBytes / 1024))"),
        Property("message.max.bytes", "\(maximumRecordBytes)"),
      ],
      // KIP-714: without it a client of 2.5 and later sends its metrics to the broker unasked.
      ifSupported: [Property("enable.metrics.push", "false")],
      further: client.properties,
      reserved: Self.reservedProperties
    )
  }
}
