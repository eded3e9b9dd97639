import ArgumentParser
import Roles

/// `fanfare api`
struct APICommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "api",
    abstract: "The HTTP front end: registers devices and enqueues sends.",
    discussion: """
      Needs kafka.bootstrapServers, registry.path (shared with the workers of this machine) or registry.postgres.url, ledger.path (written by the ledger) and for \
      each hub a way to authenticate callers (hub.NAME.authentication.*). Listens on api.host and api.port, where /healthz, /readyz and \
      /metrics answer too.
      """)

  @OptionGroup var common: CommonOptions

  func run() async throws {
    let runtime = try await common.runtime("api")
    try await APIRole.awaitOthers(runtime)
    try await runtime.run(try await APIRole.services(runtime))
  }
}

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

/// `fanfare ledger`
struct LedgerCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "ledger",
    abstract: "Keeps account: turns the status topic into something that can be looked up.",
    discussion: """
      Needs kafka.bootstrapServers. Writes the file ledger.path, which `fanfare api` on the same machine reads, or the database \
      ledger.postgres.url, where any number of ledgers share the work and any `fanfare api` reads.
      """)

  @OptionGroup var common: CommonOptions

  func run() async throws {
    let runtime = try await common.runtime("ledger")
    try await LedgerRole.awaitOthers(runtime)
    try await runtime.run(try LedgerRole.services(runtime))
  }
}
