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
