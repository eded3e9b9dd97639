import ArgumentParser
import EmbeddedKafka
import Operations
import RDKafka
import Roles
import ServiceLifecycle
import SettingsTable

/// `fanfare-dev broker`
struct BrokerCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "broker",
    abstract: "An embedded Kafka cluster for development: in memory, volatile, on this machine only.",
    discussion: """
      Prints its host:port, which the kernel chooses, and writes it to broker.announceFile for \
      kafka.bootstrapServersFile of other processes. It keeps at most 5 MiB per partition and loses everything when it \
      ends: never use it for messages that matter.
      """)

  @OptionGroup var common: CommonOptions

  func run() async throws {
    try await common.runWorkshop("broker") { runtime, workshop in
      try BrokerRole.services(runtime, workshop.broker)
    }
  }
}

/// The embedded cluster as a role.
enum BrokerRole {
  static func services(_ runtime: Runtime, _ broker: BrokerSettings) throws -> RoleServices {
    let cluster = try EmbeddedCluster(
      brokers: broker.brokers,
      topics: runtime.settings.kafka.specifications(replicationFactor: broker.brokers),
      logger: runtime.logger)
    var role = RoleServices(
      services: [
        ClusterService(cluster: cluster),
        Announcement(name: "broker", file: broker.announceFile, logger: runtime.logger) {
          cluster.bootstrapServers
        },
      ])
    role.addOperations(runtime)
    return role
  }
}

/// Keeps the cluster open until shutdown; its brokers run on threads of their own.
private struct ClusterService: Service {
  let cluster: EmbeddedCluster

  func run() async throws {
    defer { cluster.close() }
    try await gracefulShutdown()
  }
}

/// The embedded cluster of `fanfare-dev broker`.
struct BrokerSettings: Sendable {
  @Setting(in: 1...9, "the number of brokers") var brokers = 1
  @Setting(
    example: "broker", "the file to which the broker writes its host:port, for kafka.bootstrapServersFile of others")
  var announceFile: String?

  static let keys = SettingsSection("broker", BrokerSettings())
}
