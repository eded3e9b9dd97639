import ArgumentParser
import FanfareCore
import PushServices
import Roles

/// `fanfare api`
struct APICommand: ConfiguredCommand {
  static let configuration = CommandConfiguration(
    commandName: "api",
    abstract: "The HTTP front end: registers devices and enqueues sends.",
    discussion: """
      Needs kafka.bootstrapServers, registry.path (shared with the workers of this machine) or registry.postgres.url, \
      ledger.path (written by the ledger) or ledger.postgres.url, and for each hub a way to authenticate callers \
      (hub.NAME.authentication.*). Listens for callers on api.host and api.port, and for probes and Prometheus on \
      operations.host and operations.port.
      """)

  @OptionGroup var common: CommonOptions

  func run() async throws {
    try await common.run("api") { try await APIRole.services($0) }
  }
}

/// `fanfare worker`
struct WorkerCommand: ConfiguredCommand {
  static let configuration = CommandConfiguration(
    commandName: "worker",
    abstract: "Consumes sends from Kafka, pushes them to \(Platform.titles), and writes the outcomes.",
    discussion: """
      Needs kafka.bootstrapServers, registry.path or registry.postgres.url, and for each hub the credentials of its \
      platforms (\(PushServiceList.sections.joined(separator: ", "))). Workers share the partitions: start as many as \
      needed. On SIGTERM a worker stops consuming, settles what is in flight within worker.drainSeconds, and ends with \
      status 0.
      """)

  @OptionGroup var common: CommonOptions

  func run() async throws {
    try await common.run("worker") { try await WorkerRole.services($0) }
  }
}

/// `fanfare ledger`
struct LedgerCommand: ConfiguredCommand {
  static let configuration = CommandConfiguration(
    commandName: "ledger",
    abstract: "Turns the status topic into a store that can be queried.",
    discussion: """
      Needs kafka.bootstrapServers. Writes the file ledger.path, which `fanfare api` on the same machine reads, or the \
      database ledger.postgres.url, which any number of ledgers write and any `fanfare api` reads.
      """)

  @OptionGroup var common: CommonOptions

  func run() async throws {
    try await common.run("ledger") { try await LedgerRole.services($0) }
  }
}

/// `fanfare hooks`
struct HooksCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "hooks",
    abstract: "Posts the outcomes of sends to the hooks of their hubs.",
    discussion: """
      Needs kafka.bootstrapServers, hub.NAME.hooks, and hook.NAME.url and hook.NAME.secretFile for each hook. Processes \
      share the partitions: start as many as needed. On SIGTERM it finishes the requests that are under way and ends \
      with status 0.
      """)

  @OptionGroup var common: CommonOptions

  func run() async throws {
    try await common.run("hooks") { try await HooksRole.services($0) }
  }
}
