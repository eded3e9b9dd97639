import ArgumentParser
// Linked for its malloc. Records are allocated on one thread and freed on another. With the C library's malloc these
// threads would wait for each other.
import CJemalloc
import FanfareCore
import Roles

/// The product: one program, several roles.
@main
struct Fanfare: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "fanfare",
    abstract: "A push-notification dispatcher: HTTP in, Kafka between, \(Platform.titles) out.",
    discussion: """
      A deployment runs three roles with one Kafka cluster: any number of `api` and `worker` processes and a `ledger`; \
      and `hooks` if outcomes are to be posted to other systems. \
      `fanfare-dev` has a broker and simulated push services for development, and a demonstration of all roles in one \
      process.

      All roles read the same configuration: the YAML file given with --config (else named by FANFARE_CONFIG, else \
      ./fanfare.yaml or /etc/fanfare/fanfare.yaml). Environment variables override it: the key kafka.bootstrapServers \
      is FANFARE_KAFKA_BOOTSTRAP_SERVERS. deploy/fanfare.yaml, which the package installs in /etc/fanfare, lists every \
      key. SIGTERM and SIGINT drain a role and end it \
      with status 0; an unusable configuration ends it with status 78 and the names of all mistaken keys.
      """,
    version: Build.version,
    subcommands: [
      APICommand.self, WorkerCommand.self, LedgerCommand.self, HooksCommand.self, ConfigCommand.self,
      DoctorCommand.self, TopicsCommand.self, AuditCommand.self, DeadLettersCommand.self, RegistrationsCommand.self,
      QuotasCommand.self, KeysCommand.self, ReplayCommand.self, HealthCommand.self, SendCommand.self,
      SendsCommand.self, BroadcastCommand.self, DevicesCommand.self, TagsCommand.self, TemplatesCommand.self,
      AzureCommand.self,
    ])

  static func main() async { await runProgram(named: "fanfare") }
}
