package import EmbeddedKafka
package import Logging
package import RDKafka
import Synchronization

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The cluster for tests: one embedded cluster for each test process, or the one named by
/// `FANFARE_TEST_KAFKA=host:port`. Topics and groups have unique names, so tests share it without seeing each other.
package final class TestKafka: Sendable {
  /// The addresses that clients connect to.
  package let bootstrapServers: String
  /// The embedded cluster; nil if a real one is used.
  ///
  /// In a shared cluster injected faults disturb other tests: use ``embedded(brokers:)`` for tests with faults.
  package let cluster: EmbeddedCluster?

  /// The real cluster that the environment names; nil if there is none.
  package static let realServers: String? = {
    let servers = ProcessInfo.processInfo.environment["FANFARE_TEST_KAFKA"]
    return servers?.isEmpty == true ? nil : servers
  }()

  private static let instance = Mutex<TestKafka?>(nil)
  private static let counter = Atomic(0)

  private init(bootstrapServers: String, cluster: EmbeddedCluster?) {
    self.bootstrapServers = bootstrapServers
    self.cluster = cluster
  }

  /// The cluster of this test process; the first call starts it.
  package static func shared() throws -> TestKafka {
    try instance.withLock { instance in
      if let instance { return instance }
      let kafka: TestKafka
      if let servers = realServers {
        kafka = TestKafka(bootstrapServers: servers, cluster: nil)
      } else {
        kafka = try embedded()
      }
      instance = kafka
      return kafka
    }
  }

  /// A new embedded cluster for the caller, regardless of the environment; for tests that inject faults.
  package static func embedded(brokers: Int = 1) throws -> TestKafka {
    let cluster = try EmbeddedCluster(brokers: brokers, topics: [], logger: quietLogger)
    return TestKafka(bootstrapServers: cluster.bootstrapServers, cluster: cluster)
  }

  /// Creates a topic with a unique name and returns the name.
  package func topic(partitions: Int32 = 4) async throws -> String {
    let specification = TopicSpecification(name: Self.unique("topic"), partitions: partitions)
    if let cluster {
      try cluster.createTopics([specification])
    } else {
      let administrator = try TopicAdministrator(client: client("test-admin"), logger: Self.quietLogger)
      for creation in try await administrator.createTopics([specification]) {
        if case .failed(let error) = creation.outcome { throw error }
      }
    }
    return specification.name
  }

  /// A unique name of a consumer group.
  package func group() -> String {
    Self.unique("group")
  }

  /// A client of this cluster.
  package func client(_ id: String = "test") -> KafkaClientConfiguration {
    KafkaClientConfiguration(
      bootstrapServers: bootstrapServers, clientID: id, profile: cluster == nil ? ClusterProfile() : .embedded)
  }

  /// Runs a producer while `body` runs, then closes it.
  package func withProducer<Value: Sendable>(
    watch: (any ProductionWatch)? = nil,
    configure: (inout ProducerConfiguration) -> Void = { _ in },
    _ body: (Producer) async throws -> Value
  ) async throws -> Value {
    var configuration = ProducerConfiguration(client: client("test-producer"))
    configuration.linger = .milliseconds(1)
    configure(&configuration)
    let producer = try Producer(configuration: configuration, logger: Self.quietLogger, watch: watch)
    return try await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask { await producer.run() }
      let value = try await body(producer)
      await producer.close(timeout: .seconds(5))
      return value
    }
  }

  /// Runs a consumer while `body` runs, then closes it. Only `body` may read its events.
  package func withConsumer<Value: Sendable>(
    topics: [String],
    group: String,
    configure: (inout ConsumerConfiguration) -> Void = { _ in },
    _ body: (Consumer) async throws -> Value
  ) async throws -> Value {
    var configuration = ConsumerConfiguration(client: client("test-consumer"), groupID: group, topics: topics)
    // The shortest session with which the embedded cluster forms groups reliably. Its rebalances take one second less
    // than the session.
    configuration.sessionTimeout = .seconds(cluster == nil ? 10 : 4)
    configuration.autoCommitInterval = .milliseconds(100)
    configure(&configuration)
    let consumer = try Consumer(configuration: configuration, logger: Self.quietLogger)
    return try await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask { await consumer.run() }
      let value = try await body(consumer)
      // Reads the last revocation, which would otherwise wait for its deadline.
      group.addTask { for await _ in consumer.events {} }
      await consumer.close()
      return value
    }
  }

  /// Logs details for debugging a test if `FANFARE_TEST_LOG` is set.
  package static let quietLogger: Logger = {
    var logger = Logger(label: "test.kafka")
    logger.logLevel = ProcessInfo.processInfo.environment["FANFARE_TEST_LOG"] == nil ? .critical : .debug
    return logger
  }()

  private static func unique(_ kind: String) -> String {
    let number = counter.wrappingAdd(1, ordering: .relaxed).newValue
    return "test-\(kind)-\(ProcessInfo.processInfo.processIdentifier)-\(number)-\(UInt32.random(in: 0...0xffff))"
  }
}
