import ArgumentParser
import RDKafka
import Roles

/// `fanfare-dev role`: a role of the product, built from the same code, that can also use the embedded cluster's
/// settings and a clock that tests step.
struct RoleCommand: AsyncParsableCommand {
  /// The roles of the product.
  enum Role: String, CaseIterable, ExpressibleByArgument {
    case api, worker, ledger
  }

  static let configuration = CommandConfiguration(
    commandName: "role", abstract: "Runs a role of the product with the settings that only tests need.",
    shouldDisplay: false)

  @Argument var role: Role
  @OptionGroup var common: CommonOptions

  func run() async throws {
    let (runtime, workshop) = try await common.workshop(role.rawValue)
    var services: RoleServices
    switch role {
    case .api:
      try await APIRole.awaitOthers(runtime)
      services = try await APIRole.services(runtime, backlog: try workshop.backlogMonitor(runtime))
    case .worker:
      try await WorkerRole.awaitOthers(runtime)
      services = try await WorkerRole.services(runtime)
    case .ledger:
      try await LedgerRole.awaitOthers(runtime)
      services = try LedgerRole.services(runtime)
    }
    if let clock = runtime.clock as? SteppedWallClock {
      services.services.insert(UntilShutdown { await clock.run() }, at: 0)
    }
    try await runtime.run(services)
  }
}
