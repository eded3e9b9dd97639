import ArgumentParser
import Roles

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
