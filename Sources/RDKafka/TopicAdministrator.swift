package import Logging

/// Creates, describes, changes and deletes topics on a real cluster.
package struct TopicAdministrator: Sendable {
  let handle: AdminHandle
  private let logger: Logger

  /// Creates an administrator without contacting a broker.
  ///
  /// - Throws: `configuration`, naming the key.
  package init(client: KafkaClientConfiguration, logger: Logger) throws(RDKafkaError) {
    Workarounds.check(client, logger: logger)
    self.logger = logger
    handle = try AdminHandle(
      properties: PropertySet(
        required: client.commonProperties, ifSupported: [Property("enable.metrics.push", "false")],
        further: client.properties, reserved: ["bootstrap.servers", "metadata.broker.list", "client.id", "log.queue"],
        security: client.security))
  }

  /// Creates the topics that do not exist, and waits until the cluster's metadata have them, at most `timeout`.
  /// A topic with at least the specified number of partitions is unchanged.
  ///
  /// librdkafka's mock cluster does not implement the request: a missing topic fails with `unsupported`.
  ///
  /// - Returns: The outcome for each topic, in order.
  /// - Throws: When the cluster does not answer at all.
  package func createTopics(
    _ topics: [TopicSpecification], timeout: Duration = .seconds(15)
  ) async throws(RDKafkaError) -> [TopicCreation] {
    let milliseconds = timeout.timeoutMilliseconds
    let creations = try await BlockingCalls.run { [handle] () throws(RDKafkaError) in
      try Self.create(topics, with: handle, timeoutMilliseconds: milliseconds)
    }
    for creation in creations {
      logger.debug(
        "Topic checked", metadata: [LogKeys.topic: "\(creation.topic)", LogKeys.event: "\(creation.outcome)"])
    }
    return creations
  }

  /// Deletes topics with their records. Missing topics are ignored.
  ///
  /// - Throws: The cluster's error for a topic that it does not delete, `unsupported` for librdkafka's mock cluster,
  ///   and when the cluster does not answer at all.
  package func deleteTopics(_ topics: [String], timeout: Duration = .seconds(15)) async throws(RDKafkaError) {
    let milliseconds = timeout.timeoutMilliseconds
    let errors = try await BlockingCalls.run { [handle] () throws(RDKafkaError) in
      // Without a controller the request would time out.
      guard try handle.overview(timeoutMilliseconds: milliseconds).hasController else {
        throw RDKafkaError(code: .unsupported, message: "this cluster has no controller to delete topics")
      }
      return try handle.delete(topics, timeoutMilliseconds: milliseconds)
    }
    for (topic, number) in errors where number != 0 {
      let error = RDKafkaError(number: number, context: topic)
      if error.code != .unknownTopic { throw error }
    }
  }

  private static func create(
    _ topics: [TopicSpecification], with handle: AdminHandle, timeoutMilliseconds: Int32
  ) throws(RDKafkaError) -> [TopicCreation] {
    let before = try handle.overview(timeoutMilliseconds: timeoutMilliseconds)
    let missing = topics.filter { before.topics[$0.name] == nil }
    var errors: [String: RDKafkaError] = [:]
    var after = before
    if !missing.isEmpty {
      if before.hasController {
        for (topic, number) in try handle.create(missing, timeoutMilliseconds: timeoutMilliseconds) where number != 0 {
          errors[topic] = RDKafkaError(number: number, context: topic)
        }
        // Another client may have created a topic in the meantime: then its number of partitions decides.
        // A new topic comes to the brokers one after another, which takes seconds when they have just been started.
        let deadline = ContinuousClock.now + .milliseconds(Int64(timeoutMilliseconds))
        repeat {
          after = try handle.overview(timeoutMilliseconds: timeoutMilliseconds)
          guard missing.contains(where: { errors[$0.name] == nil && after.topics[$0.name] == nil }) else { break }
          Pause.betweenAttempts()
        } while .now < deadline
      } else {
        for topic in missing {
          errors[topic.name] = RDKafkaError(
            code: .unsupported,
            message:
              "\(topic.name): this cluster has no controller to create topics; create them when it is started"
          )
        }
      }
    }
    return topics.map { topic in
      let error = errors[topic.name]
      guard let partitions = after.topics[topic.name], error == nil || error?.isTopicThere == true else {
        // It may still be missing in the metadata of some brokers.
        return TopicCreation(topic: topic.name, outcome: error.map { .failed($0) } ?? .created)
      }
      guard partitions >= topic.partitions else {
        let message = "\(topic.name) exists with \(partitions) partitions; \(topic.partitions) are needed"
        return TopicCreation(topic: topic.name, outcome: .failed(RDKafkaError(code: .conflict, message: message)))
      }
      let isNew = before.topics[topic.name] == nil && error == nil
      return TopicCreation(topic: topic.name, outcome: isNew ? .created : .existed(partitions: partitions))
    }
  }
}

/// A topic to be created.
package struct TopicSpecification: Sendable, Hashable {
  package var name: String
  /// The number of partitions; an existing topic with fewer is a conflict.
  package var partitions: Int32
  /// The number of brokers that keep each partition.
  package var replicationFactor: Int16
  /// Topic settings such as `retention.ms`, used only when the topic is created.
  package var configuration: [String: String]

  package init(name: String, partitions: Int32, replicationFactor: Int16 = 1, configuration: [String: String] = [:]) {
    self.name = name
    self.partitions = partitions
    self.replicationFactor = replicationFactor
    self.configuration = configuration
  }
}

/// The outcome of creating one topic.
package struct TopicCreation: Sendable {
  package var topic: String
  package var outcome: Outcome

  /// The possible outcomes.
  package enum Outcome: Sendable, Hashable {
    case created
    /// The topic existed with this number of partitions, which is sufficient.
    case existed(partitions: Int32)
    /// The topic does not exist, or not as specified (`conflict`).
    case failed(RDKafkaError)
  }
}

extension RDKafkaError {
  /// Whether a topic could not be created because it exists: the protocol's TOPIC_ALREADY_EXISTS.
  fileprivate var isTopicThere: Bool {
    number == 36
  }
}
