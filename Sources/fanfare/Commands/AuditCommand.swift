import ArgumentParser
import Roles

/// `fanfare audit`
struct AuditCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "audit",
    abstract: "Shows that nothing is lost: accepted = settled + in flight, over the whole log.",
    discussion: """
      Reads all that lies in the sends, status, dead-letter and retry topics, and how far the workers have come, while the system runs or \
      stands still; it joins no group and changes nothing. Needs kafka.bootstrapServers, and about 75 bytes of memory for each send. A send is settled when it has \
      all its status records, and in flight when a record of it waits for a worker or in a retry topic; one that is neither is lost, and \
      listed with its place. What the cluster has deleted for its age is counted apart. Long runs report progress on standard error.

      Status 0 only if nothing is wrong, 1 otherwise. With --json one object: accepted, settled, inFlight, waitingInRetryTopics, deadLettered, \
      repeated, lost, unannounced, notSetAside, unreadable, deletedUnread, recordDeleted, statusDeleted, and problems: at most 1000 objects \
      with kind, topic, partition, offset, and for a send id and hub.
      """)

  @OptionGroup var common: CommonOptions

  @Flag(help: "Print one JSON object instead of text.")
  var json = false

  func run() async throws {
    let runtime = try await common.runtime("audit")
    let report = try await Audit(settings: runtime.settings, logger: runtime.logger).run()
    if json {
      try Console.print(json: report)
    } else {
      for line in report.text { Console.print(line) }
    }
    if !report.isSound { throw ExitCode.failure }
  }
}
