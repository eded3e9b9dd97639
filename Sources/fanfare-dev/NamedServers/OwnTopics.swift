import EmbeddedKafka
import FanfareCore
import Logging
import RDKafka
import Roles

/// The topics of one run on a cluster that the user named.
///
/// They have a prefix of their own and are deleted afterwards.
struct OwnTopics: Sendable {
  let topics: Topics
  let client: KafkaClientConfiguration
  private let administrator: TopicAdministrator
  private let logger: Logger

  /// Whether the cluster is the embedded one of another process.
  var isEmbedded: Bool { client.profile.isEmbedded }

  /// Creates the topics. Throws unless all of them exist afterwards.
  ///
  /// An embedded cluster creates a topic only when a client asks for it, with four partitions.
  init(_ topics: Topics, partitions: (String) -> Int32, at servers: String, logger: Logger) async throws {
    self.topics = topics
    self.logger = logger
    var client = KafkaClientConfiguration(bootstrapServers: servers, clientID: "fanfare-dev")
    administrator = try TopicAdministrator(client: client, logger: logger)
    let creations = try await administrator.createTopics(
      topics.created.map { TopicSpecification(name: $0, partitions: partitions($0), replicationFactor: -1) })
    let errors = creations.compactMap { if case .failed(let error) = $0.outcome { error } else { nil } }
    if errors.contains(where: { $0.code == .unsupported }) {
      client.profile = .embedded
      let producer = try Producer(configuration: ProducerConfiguration(client: client), logger: logger)
      try await producer.prepare(topics: topics.created, timeout: .seconds(15))
    } else if let error = errors.first {
      throw BenchError("no topic could be created: \(error)")
    }
    self.client = client
  }

  /// Deletes the topics, even in a cancelled task. An embedded cluster keeps them until it ends.
  func delete() async {
    guard !isEmbedded else { return }
    do { try await administrator.deleteTopics(topics.created) } catch {
      Console.error("Left behind at \(client.bootstrapServers): the topics that begin with \(topics.prefix): \(error)")
    }
  }
}
