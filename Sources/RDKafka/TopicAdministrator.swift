package import Logging

/// Creates and deletes topics on a real cluster.
package struct TopicAdministrator: Sendable {
  private let handle: AdminHandle
  private let logger: Logger

  /// Makes an administrator; contacts no broker yet.
  ///
  /// - Throws: `configuration`, naming the key.
  package init(client: KafkaClientConfiguration, logger: Logger) throws(RDKafkaError) {
    Librdkafka.check(client, logger: logger)
    self.logger = logger
    handle = try AdminHandle(
      properties: PropertySet(
        required: client.commonProperties, ifSupported: [Property("enable.metrics.push", "false")],
        further: client.properties, reserved: ["bootstrap.servers", "metadata.broker.list", "client.id", "log.queue"]))
  }

  /// Sees to it that the topics exist. A topic that exists with at least as many partitions as specified is left as it
  /// is.
  ///
  /// The embedded cluster cannot create topics on request: there, a topic that is missing fails with `unsupported`.
  /// Name its topics when it is started.
  ///
  /// - Returns: What became of each topic, in order.
  /// - Throws: When the cluster does not answer at all.
  package func createTopics(
    _ topics: [TopicSpecification], timeout: Duration = .seconds(15)
  ) async throws(RDKafkaError) -> [TopicCreation] {
    let milliseconds = timeout.timeoutMilliseconds
    let creations = try await BlockingCalls.run { [handle] () throws(RDKafkaError) in
      try Self.create(topics, with: handle, timeoutMilliseconds: milliseconds)
    }
    for creation in creations {
      logger.info(
        "Topic checked", metadata: [LogKeys.topic: "\(creation.topic)", LogKeys.event: "\(creation.outcome)"])
    }
    return creations
  }

  /// Deletes topics with all that lies in them; one that is not there is none's loss.
  ///
  /// - Throws: What the cluster says of one that is still there, `unsupported` for the embedded cluster, and when it
  ///   does not answer at all.
  package func deleteTopics(_ topics: [String], timeout: Duration = .seconds(15)) async throws(RDKafkaError) {
    let milliseconds = timeout.timeoutMilliseconds
    let errors = try await BlockingCalls.run { [handle] () throws(RDKafkaError) in
      // It would let the request time out.
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
        // Somebody else may have created a topic in the meantime: then its partitions decide.
        after = try handle.overview(timeoutMilliseconds: timeoutMilliseconds)
      } else {
        for topic in missing {
          errors[topic.name] = RDKafkaError(
            code: .unsupported,
            message:
              "\(topic.name): this cluster has no controller to create topics; an embedded cluster gets its topics at start"
          )
        }
      }
    }
    return topics.map { topic in
      let error = errors[topic.name]
      guard let partitions = after.topics[topic.name], error == nil || error?.isTopicThere == true else {
        // A topic created a moment ago need not show in every broker's metadata yet.
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

extension RDKafkaError {
  /// Whether a topic could not be created because it exists: the protocol's TOPIC_ALREADY_EXISTS.
  fileprivate var isTopicThere: Bool {
    number == 36
  }
}
