import ArgumentParser
import Roles

/// `fanfare-dev broker`
struct BrokerCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "broker",
    abstract: "An embedded Kafka cluster for development: in memory, volatile, on this machine only.",
    discussion: """
      Prints its host:port, which the kernel chooses, and writes it to broker.announceFile for kafka.bootstrapServersFile of other processes. \
      It keeps at most 5 MiB per partition and forgets everything when it ends: never use it for messages that matter.
      """)

  @OptionGroup var common: CommonOptions

  func run() async throws {
    let (runtime, workshop) = try await common.workshop("broker")
    try await runtime.run(try BrokerRole.services(runtime, workshop.broker))
  }
}
