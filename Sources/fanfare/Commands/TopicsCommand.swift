import ArgumentParser
import RDKafka
import Roles

/// `fanfare topics`
struct TopicsCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "topics", abstract: "The topics of a deployment.", subcommands: [Create.self, Check.self])

  /// `fanfare topics create`
  struct Create: ConfiguredCommand {
    static let configuration = CommandConfiguration(
      commandName: "create",
      abstract: "Creates the topics that are missing.",
      discussion: """
        Needs kafka.bootstrapServers, and a cluster with kafka.replicationFactor brokers. Topics that exist with enough \
        partitions stay as they are, unless --repair is given; one line per topic gives the result, and one line each \
        setting with which acknowledged sends could be lost. Status 0 only if all topics exist and none of them has \
        such a setting.
        """)

    @Flag(
      help: """
        Give existing topics the settings that new ones get, where they could lose acknowledged sends. The number of \
        replicas cannot be changed so; a change that another client makes at the same time is lost.
        """)
    var repair = false
    @OptionGroup var common: CommonOptions

    func run() async throws {
      let runtime = try common.runtime("topics")
      let kafka = runtime.settings.kafka
      let client = try kafka.client("topics")
      let administrator = try TopicAdministrator(client: client, logger: runtime.logger)
      var isComplete = true
      for creation in try await administrator.createTopics(
        kafka.specifications(replicationFactor: kafka.replicationFactor))
      {
        switch creation.outcome {
        case .created: Console.print("\(creation.topic): created")
        case .existed(let partitions):
          Console.print("\(creation.topic): exists with \(partitions) partition\(partitions == 1 ? "" : "s")")
        case .failed(let error):
          Console.print("\(creation.topic): \(error.words)")
          isComplete = false
        }
      }
      guard isComplete else { throw ExitCode.failure }
      let check = try TopicCheck(kafka: kafka, client: client, logger: runtime.logger)
      var report = try await check.report(patience: .seconds(15))
      if repair, !report.mendable.isEmpty {
        for mended in try await check.mend(report) { Console.print("\(mended): changed") }
        report = try await check.report()
      }
      try TopicsCommand.print(report)
    }
  }

  /// `fanfare topics check`
  struct Check: ConfiguredCommand {
    static let configuration = CommandConfiguration(
      commandName: "check",
      abstract: "Prints what is wrong with the topics: settings with which acknowledged sends could be lost.",
      discussion: """
        Changes nothing. Compares the replicas of each topic with kafka.replicationFactor, and min.insync.replicas, \
        unclean.leader.election.enable, cleanup.policy, max.message.bytes, retention.ms and retention.bytes with what \
        `fanfare topics create` sets. Needs permission to describe the topics and their configurations. Status 0 if \
        nothing is wrong, 1 if something is, or cannot be read.
        """)

    @OptionGroup var common: CommonOptions

    func run() async throws {
      let runtime = try common.runtime("topics")
      let kafka = runtime.settings.kafka
      let check = try TopicCheck(kafka: kafka, client: try kafka.client("topics"), logger: runtime.logger)
      let report = try await check.report()
      try TopicsCommand.print(report)
      guard report.unreadable.isEmpty else { throw ExitCode.failure }
      Console.print("Nothing is wrong with \(report.topics.count) topics.")
    }
  }

  /// Prints findings and what could not be read. Throws status 1 if there are findings.
  private static func print(_ report: TopicCheck.Report) throws {
    for problem in report.unreadable { Console.print("cannot be read: \(problem)") }
    for finding in report.findings { Console.print("\(finding)") }
    guard report.findings.isEmpty else { throw ExitCode.failure }
  }
}
