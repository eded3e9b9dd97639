import ArgumentParser
import Roles

/// `fanfare audit`
struct AuditCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "audit",
    abstract: "Shows that nothing is lost: accepted = settled + in flight, over the whole log.",
    discussion: """
      Reads the sends, status, dead-letter and retry topics and the workers' committed positions. It works on a \
      running or a stopped deployment, joins no group and changes nothing. Needs kafka.bootstrapServers, and about 75 \
      bytes of memory per send. A send is settled when it has all its status records, and in flight while a record of \
      it waits for a worker or in a retry topic. A send that is neither is lost and listed with its place. Records \
      that the cluster has deleted for their age are counted separately. Long runs report progress on standard error.

      Status 0 if nothing is wrong, otherwise 1. With --json one object: accepted, settled, inFlight, \
      waitingInRetryTopics, deadLettered, repeated, lost, unannounced, notSetAside, unreadable, deletedUnread, \
      recordDeleted, statusDeleted, and problems: at most 1000 objects with kind, topic, partition, offset, and for a \
      send id and hub.
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
