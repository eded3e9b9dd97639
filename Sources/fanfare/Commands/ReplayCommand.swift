import ArgumentParser
import FanfareCore
import Roles

/// `fanfare replay`
struct ReplayCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "replay",
    abstract: "Dispatches sends of the log again, under their ids.",
    discussion: """
      Puts the sends that were accepted in that time, and are still in the log, onto the sends topic again. They keep their ids, and so do their \
      pushes (apns-id, data.pushId, MS-CV): an app can recognise what it has. They count once: the status of a send that had ended before is a \
      repeated one. What waits for a worker or in a retry topic is left alone, and so is what was cancelled; what is older than its time to \
      live expires again instead of being delivered late. Needs kafka.bootstrapServers, and memory for each send of that time. With --json \
      one object: replay, replayed, cancelled (sends that were left out).
      """)

  @OptionGroup var common: CommonOptions

  @Option(help: ArgumentHelp("Sends accepted at this time or later (RFC 3339).", valueName: "time"))
  var from: TimeArgument

  @Option(help: ArgumentHelp("Sends accepted before this time (RFC 3339).", valueName: "time"))
  var to: TimeArgument

  @Option(help: "Only to devices of this platform.")
  var platform: PlatformArgument?

  @Option(help: ArgumentHelp("Only sends to this user; where there are several hubs, with --hub.", valueName: "name"))
  var user: String?

  @Option(help: ArgumentHelp("Only sends of this hub.", valueName: "name"))
  var hub: String?

  @Flag(
    help:
      "Only sends without a status, and only platforms where a device's last outcome is failed, unconfirmed or expired."
  )
  var failedOnly = false

  @Flag(help: "Change nothing, and say what would be done.")
  var dryRun = false

  @Flag(help: "Print one JSON object instead of text.")
  var json = false

  func validate() throws {
    guard from.time < to.time else { throw ValidationError("--to must be later than --from") }
  }

  func run() async throws {
    let runtime = try await common.runtime("replay")
    let hubs = runtime.settings.hubs.map(\.name)
    let name = hub.flatMap { HubName($0) }
    if let hub {
      guard let name, hubs.contains(name) else {
        throw ValidationError("--hub: there is no hub \(hub) in this deployment")
      }
    } else if user != nil, hubs.count > 1 {
      throw ValidationError(
        "--user: a user of which hub? Give --hub, one of \(hubs.map(\.rawValue).sorted().joined(separator: ", "))")
    }
    let selection = ReplaySelection(
      accepted: from.time..<to.time, platform: platform?.platform, user: user, hub: name, failedOnly: failedOnly)
    let outcome = try await Replay(settings: runtime.settings, isDryRun: dryRun, logger: runtime.logger).run(selection)
    if json {
      try Console.print(json: outcome)
    } else {
      Console.print("\(outcome.replayed) sends \(dryRun ? "would be dispatched" : "are dispatched") again")
      if outcome.cancelled > 0 { Console.print("\(outcome.cancelled) sends were cancelled, and are left alone") }
    }
  }
}
