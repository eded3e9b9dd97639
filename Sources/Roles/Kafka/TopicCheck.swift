import FanfareCore
package import Logging
package import RDKafka

/// Compares the topics of a deployment with what its promises need.
package struct TopicCheck: Sendable {
  package struct Report: Sendable {
    /// The topics that exist, in the order of the configuration.
    package var topics: [TopicDescription] = []
    /// The settings that break a promise.
    package var findings: [TopicFinding] = []
    /// The topics and settings that could not be read, with the reason.
    package var unreadable: [String] = []
    /// Whether a topic is missing.
    fileprivate(set) var lacksTopics = false

    /// The findings that a change of the topic's settings mends, by topic.
    package var mendable: [String: Set<String>] {
      var mendable: [String: Set<String>] = [:]
      for finding in findings {
        if let property = finding.property, property != "replicas" {
          mendable[finding.topic, default: []].insert(property)
        }
      }
      return mendable
    }
  }

  private let administrator: TopicAdministrator
  private let specifications: [TopicSpecification]

  /// A check of these topics; nil for all. Throws `configuration`, naming the key.
  package init(
    kafka: KafkaSettings, client: KafkaClientConfiguration, topics: [String]? = nil, logger: Logger
  ) throws(RDKafkaError) {
    administrator = try TopicAdministrator(client: client, logger: logger)
    specifications = kafka.specifications(replicationFactor: kafka.replicationFactor).filter {
      topics?.contains($0.name) ?? true
    }
  }

  /// Reads and judges all topics. Throws when the cluster does not answer.
  ///
  /// Missing topics are looked for again until `patience` is over: new ones come to the brokers one after another,
  /// which takes seconds when these have just been started.
  package func report(
    timeout: Duration = .seconds(15), patience: Duration = .zero
  ) async throws(RDKafkaError) -> Report {
    let deadline = ContinuousClock.now + patience
    while true {
      let report = try await read(timeout: timeout)
      guard report.lacksTopics, .now < deadline else { return report }
      // Cancelled: the report says so much.
      do { try await Task.sleep(for: .milliseconds(200)) } catch { return report }
    }
  }

  private func read(timeout: Duration) async throws(RDKafkaError) -> Report {
    var report = Report()
    guard let topics = try await administrator.describe(specifications.map(\.name), timeout: timeout) else {
      report.unreadable = ["the topics' settings: this is librdkafka's mock cluster, which keeps nothing"]
      return report
    }
    report.topics = topics
    let byName = Dictionary(uniqueKeysWithValues: topics.map { ($0.name, $0) })
    for specification in specifications {
      guard let topic = byName[specification.name] else {
        let missing = "does not exist"
        report.lacksTopics = true
        report.findings.append(
          TopicFinding(topic: specification.name, property: nil, value: missing, expectation: "created"))
        continue
      }
      report.findings += TopicRequirements(specification: specification).findings(topic)
      if case .failure(let error) = topic.settings {
        if error.code == .unknownTopic { report.lacksTopics = true }
        report.unreadable.append("the settings of \(topic.name): \(error.words)")
      }
    }
    return report
  }

  /// Gives the topics the settings that they should have been created with, where the report has found others.
  ///
  /// - Returns: What was changed.
  /// - Throws: The cluster's error for the first topic that it does not change.
  package func mend(_ report: Report) async throws(RDKafkaError) -> [TopicFinding] {
    var mended: [TopicFinding] = []
    for topic in report.topics {
      guard let properties = report.mendable[topic.name],
        let wanted = specifications.first(where: { $0.name == topic.name })?.configuration
      else { continue }
      let changes = wanted.filter { properties.contains($0.key) }
      guard !changes.isEmpty else { continue }
      try await administrator.change(changes, of: topic)
      mended += report.findings.filter { finding in
        finding.topic == topic.name && finding.property.map { changes[$0] != nil } == true
      }
    }
    return mended
  }
}
