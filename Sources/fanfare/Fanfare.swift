import ArgumentParser
// Linked for its malloc: what one thread allocates here another frees, record by record, and the C library's malloc
// makes threads wait for one another then.
import CJemalloc

/// The program: one binary, several roles.
@main
struct Fanfare: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "fanfare",
    abstract: "A push-notification dispatcher: HTTP in, Kafka between, APNs, FCM and WNS out.",
    discussion: """
      A deployment runs three roles against one Kafka cluster: any number of `api` and `worker` processes and a `ledger`. \
      `broker` and `simulator` stand in for Kafka and the push services in development; `demo` is everything in one process.

      All roles read one configuration: the YAML file given with --config (else named by FANFARE_CONFIG, else ./fanfare.yaml if it is \
      there), and over it the environment: the key kafka.bootstrapServers is FANFARE_KAFKA_BOOTSTRAP_SERVERS. \
      deploy/fanfare.yaml lists every key. SIGTERM and SIGINT drain and end a role with status 0; a configuration that cannot be used \
      ends it with status 78 and the key's name.
      """,
    version: Build.version,
    subcommands: [
      APICommand.self, WorkerCommand.self, LedgerCommand.self, SimulatorCommand.self, BrokerCommand.self,
      DemoCommand.self,
      TopicsCommand.self, AuditCommand.self, DeadLettersCommand.self, RegistrationsCommand.self, ReplayCommand.self,
      BenchCommand.self,
      FaultsCommand.self,
      BenchConstantCommand.self,
    ])

  /// Runs the command line; a configuration that cannot be used has an exit status of its own.
  static func main() async {
    do {
      var command = try parseAsRoot()
      if var asynchronous = command as? any AsyncParsableCommand {
        try await asynchronous.run()
      } else {
        try command.run()
      }
      // Success would tell a script that it has all of the output.
      if let failure = Console.outputFailure {
        Console.error("fanfare: standard output is not whole: \(failure)")
        exit(withError: ExitCode.failure)
      }
    } catch {
      guard let error = SettingsError(cause: error) else { exit(withError: error) }
      Console.error("fanfare: \(error)")
      // EX_CONFIG of sysexits.h.
      exit(withError: ExitCode(78))
    }
  }
}
