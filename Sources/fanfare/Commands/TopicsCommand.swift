import ArgumentParser
import RDKafka
import Roles

/// `fanfare topics`
struct TopicsCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "topics", abstract: "The topics of a deployment.", subcommands: [Create.self])

  /// `fanfare topics create`
  struct Create: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "create",
      abstract: "Creates the topics that are missing.",
      discussion: """
        Needs kafka.bootstrapServers, and a cluster with kafka.replicationFactor brokers. Topics that exist with enough \
        partitions stay as they are; one line per topic gives the result. Status 0 only if all topics exist.
        """)

    @OptionGroup var common: CommonOptions

    func run() async throws {
      let runtime = try await common.runtime("topics")
      let kafka = runtime.settings.kafka
      let administrator = try TopicAdministrator(client: try kafka.client("topics"), logger: runtime.logger)
      var isComplete = true
      for creation in try await administrator.createTopics(
        kafka.specifications(replicationFactor: kafka.replicationFactor))
      {
        switch creation.outcome {
        case .created: Console.print("\(creation.topic): created")
        case .existed(let partitions): Console.print("\(creation.topic): exists with \(partitions) partitions")
        case .failed(let error):
          Console.print("\(creation.topic): \(error)")
          isComplete = false
        }
      }
      if !isComplete { throw ExitCode.failure }
    }
  }
}
