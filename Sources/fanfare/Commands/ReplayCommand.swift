import ArgumentParser
import FanfareCore
import Operations
import Roles

/// `fanfare replay`
struct ReplayCommand: ConfiguredCommand {
  static let configuration = CommandConfiguration(
    commandName: "replay",
    abstract: "Dispatches logged sends again, with their ids.",
    discussion: """
      Produces the sends accepted in the given time, and still in the log, to the sends topic again. Sends and pushes \
      keep their ids (apns-id, data.pushId, MS-CV), so an app can recognise a repetition. A send counts once: a second \
      status is a repeated one. Sends that wait for a worker or in a retry topic and cancelled sends are skipped; a \
      send past its time to live expires again. Needs kafka.bootstrapServers, and memory for each send of that time. \
      With --json one object: replay, replayed, cancelled (the skipped sends).
      """)

  @OptionGroup var common: CommonOptions

  @Option(
    parsing: .unconditional,
    help: ArgumentHelp("Sends accepted at this time or later; \(TimeArgument.help).", valueName: "time"))
  var from: TimeArgument

  @Option(
    parsing: .unconditional,
    help: ArgumentHelp("Sends accepted before this time; \(TimeArgument.help).", valueName: "time"))
  var to: TimeArgument

  @Option(help: "Only to devices of this platform.")
  var platform: PlatformArgument?

  @Option(help: ArgumentHelp("Only sends to this user; needs --hub if there are several hubs.", valueName: "name"))
  var user: String?

  @Option(help: ArgumentHelp("Only sends of this hub.", valueName: "name"))
  var hub: String?

  @Flag(
    help:
      "Only sends without a status, and only platforms where a device's last outcome is failed, unconfirmed or expired."
  )
  var failedOnly = false

  @Flag(help: "Change nothing; only report the result that the command would have.")
  var dryRun = false

  @Flag(help: "Print one JSON object instead of text.")
  var json = false

  func validate() throws {
    guard from.time < to.time else { throw ValidationError("--to must be later than --from") }
  }

  func run() async throws {
    let runtime = try common.runtime("replay")
    let hubs = runtime.settings.hubs.map(\.name)
    let name = hub.flatMap { HubName($0) }
    if let hub {
      guard let name, hubs.contains(name) else {
        throw ValidationError("--hub: there is no hub \(hub) in this deployment")
      }
    } else if user != nil, hubs.count > 1 {
      throw ValidationError(
        "--user needs --hub, one of \(hubs.map(\.rawValue).sorted().joined(separator: ", "))"
      )
    }
    let selection = ReplaySelection(
      accepted: from.time..<to.time, platform: platform?.platform, user: user, hub: name, failedOnly: failedOnly)
    let outcome = try await Replay(settings: runtime.settings, isDryRun: dryRun, logger: runtime.logger).run(selection)
    if !dryRun {
      runtime.security.record(.sendsReplayed, hub: hub, details: ["count": "\(outcome.replayed)"])
    }
    if json {
      try Console.print(json: outcome)
    } else {
      Console.print("\(outcome.replayed) sends \(dryRun ? "would be dispatched" : "are dispatched") again")
      if outcome.cancelled > 0 { Console.print("\(outcome.cancelled) sends were cancelled and are skipped") }
    }
  }
}
