import ArgumentParser
import FanfareCore
import Logging
import Registry

/// `fanfare registrations`
struct RegistrationsCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "registrations", abstract: "What an operator may ask about the devices of a hub.", subcommands: [Tombstones.self]
  )

  /// `fanfare registrations tombstones`
  struct Tombstones: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "tombstones",
      abstract: "Lists the registrations that are gone, oldest first: when, and why.",
      discussion: """
        One line each: time, id, cause, detail. The cause is dead (the push service no longer knows the device; the detail is its reason), removed \
        (by its user) or merged (another registration has its handle; the detail is that one's id). They are kept for 30 days. Needs \
        registry.path. With --json one object a line: registration, at, cause, detail.
        """)

    /// Tombstones asked for at a time.
    private static let page = 1000

    @OptionGroup var common: CommonOptions

    @Option(help: "The hub whose registrations they were.")
    var hub = HubName.default.rawValue

    @Option(help: ArgumentHelp("Only what went at this time or later (RFC 3339).", valueName: "time"))
    var since: TimeArgument?

    @Option(help: "Only what went for this cause.")
    var cause: Tombstone.Cause?

    @Flag(help: "Print one JSON object a line instead of text.")
    var json = false

    func validate() throws {
      guard HubName(hub) != nil else { throw ValidationError("--hub must be a hub's name: \(HubName.rule)") }
    }

    func run() async throws {
      let settings = try await common.settings()
      guard let name = HubName(hub), settings.hubs.contains(where: { $0.name == name }) else {
        throw ValidationError("--hub: there is no hub \(hub) in this deployment")
      }
      let store = try await settings.registry.open(role: "registrations", logger: Logger(label: "fanfare.registrations"))
      var page: [BuriedRegistration]
      var last: BuriedRegistration?
      repeat {
        page = try await store.tombstones(
          hub: name, since: since?.time ?? UnixTime(milliseconds: 0), cause: cause, after: last, limit: Self.page)
        for buried in page {
          let line = TombstoneLine(buried)
          if json { try Console.print(json: line) } else { Console.print(line.text) }
        }
        last = page.last
      } while page.count == Self.page
    }
  }
}

extension Tombstone.Cause: ExpressibleByArgument {}
