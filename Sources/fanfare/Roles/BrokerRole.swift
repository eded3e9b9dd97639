import Operations
import RDKafka

/// The embedded cluster as a role.
enum BrokerRole {
  static func services(_ runtime: Runtime) throws -> RoleServices {
    let settings = runtime.settings
    let cluster = try EmbeddedCluster(
      brokers: settings.broker.brokers, topics: settings.kafka.specifications(replicationFactor: settings.broker.brokers),
      logger: runtime.logger)
    return RoleServices(services: [
      UntilShutdown {
        // The brokers run on threads of their own; this only keeps them until the end.
        defer { cluster.close() }
        try await Task.sleep(for: .seconds(Int64.max / 4))
      },
      Announcement(name: "broker", file: settings.broker.announceFile, logger: runtime.logger) { cluster.bootstrapServers },
      runtime.operations(checks: []),
    ])
  }
}
