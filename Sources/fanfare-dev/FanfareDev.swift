import ArgumentParser
// As in the product: benchmarks measure its roles in this program.
import CJemalloc
import Roles

/// The workshop: the development tools that are not in the product.
@main
struct FanfareDev: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "fanfare-dev",
    abstract: "Development tools for Fanfare: demo, push simulator, Kafka broker, benchmarks and fault tests.",
    discussion: """
      `broker` and `simulator` replace Kafka and the push services; `fanfare` uses them like real ones. They read the \
      same configuration as `fanfare`, and further keys: deploy/fanfare-dev.yaml lists them.
      """,
    version: Build.version,
    subcommands: [
      DemoCommand.self, SimulatorCommand.self, BrokerCommand.self, BenchCommand.self, FaultsCommand.self,
      RoleCommand.self, SettingsCommand.self, BenchConstantCommand.self, SimulateCommand.self,
    ])

  static func main() async { await runProgram(named: "fanfare-dev") }
}
