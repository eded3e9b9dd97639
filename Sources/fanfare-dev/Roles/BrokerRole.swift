import EmbeddedKafka
import Operations
import RDKafka
import Roles
import ServiceLifecycle

/// The embedded cluster as a role.
enum BrokerRole {
  static func services(_ runtime: Runtime, _ broker: BrokerSettings) throws -> RoleServices {
    let cluster = try EmbeddedCluster(
      brokers: broker.brokers,
      topics: runtime.settings.kafka.specifications(replicationFactor: broker.brokers),
      logger: runtime.logger)
    return RoleServices(
      services: [
        ClusterService(cluster: cluster),
        Announcement(name: "broker", file: broker.announceFile, logger: runtime.logger) {
          cluster.bootstrapServers
        },
      ] + runtime.operations(checks: []))
  }
}

/// Keeps the cluster, whose brokers run on threads of their own, until the end.
private struct ClusterService: Service {
  let cluster: EmbeddedCluster

  func run() async throws {
    defer { cluster.close() }
    try await gracefulShutdown()
  }
}
