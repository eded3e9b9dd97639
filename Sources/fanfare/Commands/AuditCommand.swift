import ArgumentParser
import FanfareCore
import Ledger
import Roles

/// `fanfare audit`
struct AuditCommand: ConfiguredCommand {
  static let configuration = CommandConfiguration(
    commandName: "audit",
    abstract: "Shows that nothing is lost: accepted = settled + in flight, over the whole log.",
    discussion: """
      Reads the sends, status, dead-letter and retry topics and the workers' committed positions. It works on a \
      running or a stopped deployment, joins no group and changes nothing. Needs kafka.bootstrapServers, and about 75 \
      bytes of memory per send. A send is settled when it has all its status records, and in flight while a record of \
      it waits for a worker or in a retry topic. A send that is neither is lost and listed with its place. Records \
      that the cluster has deleted for their age are counted separately. Long runs report progress on standard error.

      A problem that is understood, such as an unreadable record that stays until retention deletes it, is \
      acknowledged by its place: --acknowledge fanfare.status/3/118 --reason "written by a trial of 12 May". The note is \
      kept in the ledger's store (ledger.path or ledger.postgres.url), so run it where that is; later audits show the \
      problem with its reason and do not count it.

      Status 0 if nothing is wrong, otherwise 1. With --json one object: accepted, settled, inFlight, \
      waitingInRetryTopics, deadLettered, repeated, lost, unannounced, notSetAside, unreadable, deletedUnread, \
      recordDeleted, statusDeleted, lostAcknowledged, problems: at most 1000 objects with kind, topic, partition, \
      offset, and for a send id and hub; and acknowledged: such objects with their reason.
      """)

  @OptionGroup var common: CommonOptions

  @Flag(help: "Print one JSON object instead of text.")
  var json = false

  @Option(
    help: ArgumentHelp(
      "Acknowledge the problem at this place instead of an audit; repeatable.", valueName: "topic/partition/offset"))
  var acknowledge: [PlaceArgument] = []

  @Option(help: "Why the problem need not count any more, up to 500 characters.")
  var reason: String?

  func validate() throws {
    guard acknowledge.isEmpty == (reason == nil) else {
      throw ValidationError("--acknowledge and --reason belong together")
    }
    guard let reason else { return }
    guard !reason.isEmpty, reason.count <= Acknowledgement.maximumReasonLength else {
      throw ValidationError("--reason must have 1 to \(Acknowledgement.maximumReasonLength) characters")
    }
  }

  func run() async throws {
    let runtime = try common.runtime("audit")
    let store = try runtime.settings.ledger.acknowledgements(logger: runtime.logger)
    guard let reason else { return try await audit(runtime, store) }
    for place in acknowledge.map(\.place) {
      try await store.acknowledge(
        Acknowledgement(
          topic: place.topic, partition: place.partition, offset: place.offset, reason: reason, at: runtime.clock.now())
      )
      Console.print("\(place.topic)/\(place.partition)/\(place.offset): acknowledged")
    }
  }

  private func audit(_ runtime: Runtime, _ store: any AcknowledgementStore) async throws {
    var audit = Audit(settings: runtime.settings, logger: runtime.logger)
    do {
      for known in try await store.acknowledgements() {
        let place = AuditPlace(topic: known.topic, partition: known.partition, offset: known.offset)
        audit.acknowledged[place] = known.reason
      }
    } catch let error as LedgerError {
      // An audit needs no ledger. Without its notes it counts every problem.
      if error.code != .notThere { Console.error("fanfare: acknowledgements cannot be read: \(error.message)") }
    }
    let report = try await audit.run()
    if json {
      try Console.print(json: report)
    } else {
      for line in report.text { Console.print(line) }
    }
    if !report.isSound { throw ExitCode.failure }
  }
}
