import ArgumentParser
import Roles

/// `fanfare worker`
struct WorkerCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "worker",
    abstract: "Takes sends from Kafka, pushes them to APNs, FCM and WNS, and writes what became of each.",
    discussion: """
      Needs kafka.bootstrapServers, registry.path or registry.postgres.url, and for each hub the credentials of the platforms it uses (hub.NAME.apns.*, \
      hub.NAME.fcm.*, hub.NAME.wns.*). Start as many as there is work for: they share the partitions. SIGTERM stops taking, settles what \
      is in flight within worker.drainSeconds, and ends with status 0.
      """)

  @OptionGroup var common: CommonOptions

  func run() async throws {
    let runtime = try await common.runtime("worker")
    try await WorkerRole.awaitOthers(runtime)
    try await runtime.run(try await WorkerRole.services(runtime))
  }
}
