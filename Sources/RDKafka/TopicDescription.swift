/// A topic as the cluster has it.
package struct TopicDescription: Sendable {
  package var name: String
  /// The smallest number of replicas of any partition.
  package var replicas: Int
  /// The settings in effect by name, with the cluster's defaults; or why they cannot be read.
  package var settings: Result<[String: TopicSetting], RDKafkaError>

  package init(name: String, replicas: Int, settings: Result<[String: TopicSetting], RDKafkaError>) {
    (self.name, self.replicas, self.settings) = (name, replicas, settings)
  }
}

/// One setting of a topic.
package struct TopicSetting: Sendable, Hashable {
  package var value: String
  /// Whether the topic has the value itself, instead of a default of the cluster.
  package var isOwn: Bool

  package init(value: String, isOwn: Bool) { (self.value, self.isOwn) = (value, isOwn) }
}

extension TopicAdministrator {
  /// Reads the replicas and the settings of those topics that exist.
  ///
  /// - Returns: Nil if the cluster is librdkafka's mock cluster, which has no settings.
  /// - Throws: When the cluster does not answer. Settings alone that cannot be read are no error.
  package func describe(
    _ topics: [String], timeout: Duration = .seconds(15)
  ) async throws(RDKafkaError) -> [TopicDescription]? {
    let milliseconds = timeout.timeoutMilliseconds
    return try await BlockingCalls.run { [handle] () throws(RDKafkaError) in
      let overview = try handle.overview(timeoutMilliseconds: milliseconds)
      // A real cluster without a controller has the id -1.
      guard overview.hasController || overview.controller < 0 else { return nil }
      let existing = topics.filter { overview.topics[$0] != nil }
      var settings: [String: Result<[String: TopicSetting], RDKafkaError>] = [:]
      var problem: RDKafkaError?
      if !existing.isEmpty {
        do throws(RDKafkaError) {
          settings = try handle.describe(existing, timeoutMilliseconds: milliseconds)
        } catch {
          problem = error
        }
      }
      return existing.map { name in
        let unanswered = problem ?? RDKafkaError(code: .broker, message: "\(name): the cluster did not describe it")
        return TopicDescription(
          name: name, replicas: overview.replicas[name] ?? 0, settings: settings[name] ?? .failure(unanswered))
      }
    }
  }

  /// Changes settings of a topic and keeps its others.
  ///
  /// librdkafka before 2.2 has only the request that replaces all of a topic's own settings, so those in `description`
  /// are written again. A change that another client makes since then is lost.
  ///
  /// - Throws: The error with which the settings were read, or the cluster's for the change.
  package func change(
    _ settings: [String: String], of topic: TopicDescription, timeout: Duration = .seconds(15)
  ) async throws(RDKafkaError) {
    let own = try topic.settings.get().filter(\.value.isOwn).mapValues(\.value)
    let all = own.merging(settings) { $1 }
    let milliseconds = timeout.timeoutMilliseconds
    try await BlockingCalls.run { [handle] () throws(RDKafkaError) in
      try handle.alter(topic.name, settings: all, timeoutMilliseconds: milliseconds)
    }
  }
}
