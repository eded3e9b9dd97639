package import Logging

/// Reads topics, their ends and the offsets of groups without joining a group, committing, or
/// creating topics.
package struct LogReader: Sendable {
  private let client: KafkaClientConfiguration
  private let handle: Handle
  private let timeout: Duration

  /// Creates a reader without contacting a broker.
  /// `timeout` bounds each request, and a scan without progress.
  ///
  /// - Throws: `configuration`, naming the key.
  package init(
    client: KafkaClientConfiguration, timeout: Duration = .seconds(30), logger: Logger
  ) throws(RDKafkaError) {
    Workarounds.check(client, logger: logger)
    self.client = client
    self.timeout = timeout
    handle = try Self.makeHandle(client, group: client.clientID)
  }

  /// The names of all topics, in no particular order.
  ///
  /// - Throws: `unreachable`, `timedOut`, `unauthorized`.
  package func topics() async throws(RDKafkaError) -> [String] {
    let milliseconds = timeout.timeoutMilliseconds
    return try await BlockingCalls.run { [handle] () throws(RDKafkaError) in
      Array(try handle.overview(timeoutMilliseconds: milliseconds).topics.keys)
    }
  }

  /// The partitions of the topics.
  ///
  /// - Throws: `unknownTopic`, naming the topic; `unreachable`, `timedOut`, `unauthorized`.
  package func partitions(of topics: [String]) async throws(RDKafkaError) -> [TopicPartition] {
    let milliseconds = timeout.timeoutMilliseconds
    let overview = try await BlockingCalls.run { [handle] () throws(RDKafkaError) in
      try handle.overview(timeoutMilliseconds: milliseconds)
    }
    var partitions: [TopicPartition] = []
    for topic in topics {
      guard let count = overview.topics[topic], count > 0 else {
        throw RDKafkaError(code: .unknownTopic, message: "the topic \(topic) does not exist")
      }
      partitions += (0..<count).map { TopicPartition(topic: topic, partition: $0) }
    }
    return partitions
  }

  /// Asks for a topic by its name. In a list of all topics those are missing that this client may not see.
  ///
  /// - Throws: `unauthorized` if this client may not see it, `unknownTopic`; `unreachable`, `timedOut`.
  package func require(_ topic: String) async throws(RDKafkaError) {
    let milliseconds = timeout.timeoutMilliseconds
    try await BlockingCalls.run { [handle] () throws(RDKafkaError) in
      try handle.require(topic, timeoutMilliseconds: milliseconds)
    }
  }

  /// Reads at the end of a topic, where there is no record yet.
  ///
  /// - Throws: `unauthorized` if this client may not read it, and as `partitions(of:)`.
  package func tryReading(_ topic: String) async throws(RDKafkaError) {
    let ends = try await spans(of: [topic]).prefix(1).map { span in
      LogSpan(partition: span.partition, start: span.end, end: span.end)
    }
    let scan = try LogScan(ends, properties: Self.properties(client, group: client.clientID), timeout: timeout)
    while try await scan.next() != nil {}
  }

  /// The spans of all partitions of the topics, including empty ones.
  /// Throws as `partitions(of:)` does.
  package func spans(of topics: [String]) async throws(RDKafkaError) -> [LogSpan] {
    let partitions = try await partitions(of: topics)
    let milliseconds = timeout.timeoutMilliseconds
    return try await BlockingCalls.run { [handle] () throws(RDKafkaError) in
      let first = try handle.ends(.first, of: partitions, timeoutMilliseconds: milliseconds)
      var ends: [TopicPartition: Int64] = [:]
      for end in try handle.ends(.next, of: partitions, timeoutMilliseconds: milliseconds) {
        ends[end.partition] = end.offset
      }
      return first.map { first in
        let start = max(0, first.offset)
        return LogSpan(partition: first.partition, start: start, end: max(start, ends[first.partition] ?? 0))
      }
    }
  }

  /// The offset after the last record of each partition, with one request per broker.
  /// Throws `unreachable`, `timedOut`, `unauthorized`.
  package func ends(of partitions: [TopicPartition]) async throws(RDKafkaError) -> [PartitionOffset] {
    let milliseconds = timeout.timeoutMilliseconds
    return try await BlockingCalls.run { [handle] () throws(RDKafkaError) in
      try handle.ends(.next, of: partitions, timeoutMilliseconds: milliseconds)
    }
  }

  /// The offsets that the group has committed; partitions without one are omitted.
  /// Throws `unreachable`, `timedOut`, `unauthorized`.
  package func committed(by group: String, in partitions: [TopicPartition]) async throws(RDKafkaError)
    -> [PartitionOffset]
  {
    let milliseconds = timeout.timeoutMilliseconds
    // A handle has one group.
    let asker = group == client.clientID ? handle : try Self.makeHandle(client, group: group)
    return try await BlockingCalls.run { () throws(RDKafkaError) in
      try asker.committed(partitions, timeoutMilliseconds: milliseconds)
    }
  }

  /// Begins to read the spans.
  package func scan(_ spans: [LogSpan]) throws(RDKafkaError) -> LogScan {
    try LogScan(
      spans.filter { $0.count > 0 }, properties: Self.properties(client, group: client.clientID), timeout: timeout)
  }

  private static func makeHandle(_ client: KafkaClientConfiguration, group: String) throws(RDKafkaError) -> Handle {
    try Handle(kind: .consumer, properties: properties(client, group: group), events: 0, logsToQueue: false)
  }

  private static func properties(_ client: KafkaClientConfiguration, group: String) -> PropertySet {
    var required =
      client.commonProperties + [
        // librdkafka requires one. Without a subscription it is not joined.
        Property("group.id", group),
        Property("enable.auto.commit", "false"),
        Property("enable.auto.offset.store", "false"),
        // Used when retention has removed the offset.
        Property("auto.offset.reset", "earliest"),
        // The last offset before the end may have no record.
        Property("enable.partition.eof", "true"),
        Property("fetch.wait.max.ms", "\(client.profile.fetchWait.wholeMilliseconds)"),
        Property("queued.min.messages", "100000"),
        Property("queued.max.messages.kbytes", "65536"),
        Property("fetch.message.max.bytes", "1048576"),
        Property("check.crcs", "true"),
      ]
    if let backoff = client.profile.fetchErrorBackoff {
      required.append(Property("fetch.error.backoff.ms", "\(backoff.wholeMilliseconds)"))
    }
    return PropertySet(
      required: required,
      ifSupported: [Workarounds.fetchBackoff, Property("enable.metrics.push", "false")],
      further: client.properties, reserved: ConsumerConfiguration.reservedProperties,
      security: client.security)
  }
}
