/// A topic as it should be.
package struct TopicSpecification: Sendable, Hashable {
  /// The name.
  package var name: String
  /// How many partitions; a topic that exists with fewer does not fit.
  package var partitions: Int32
  /// On how many brokers each partition is kept.
  package var replicationFactor: Int16
  /// Topic settings such as `retention.ms`; used only when the topic is created.
  package var configuration: [String: String]

  /// Makes a specification.
  package init(name: String, partitions: Int32, replicationFactor: Int16 = 1, configuration: [String: String] = [:]) {
    self.name = name
    self.partitions = partitions
    self.replicationFactor = replicationFactor
    self.configuration = configuration
  }
}
