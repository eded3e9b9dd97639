import ArgumentParser
import FanfareCore
import Registry
import Roles

/// `fanfare registrations`
struct RegistrationsCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "registrations", abstract: "What an operator may ask about the devices of a hub, and do with them.",
    subcommands: [Import.self, Export.self, Tombstones.self])

  /// `fanfare registrations tombstones`
  struct Tombstones: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "tombstones",
      abstract: "Lists the registrations that are gone, oldest first: when, and why.",
      discussion: """
        One line each: time, id, cause, detail. The cause is dead (the push service no longer knows the device; the detail is its reason), removed \
        (by its user), merged (another registration has its handle; the detail is that one's id) or expired (its app was not heard of for \
        registry.expireAfterDays). They are kept for 30 days. Needs registry.path or registry.postgres.url. With --json one object a line: registration, at, cause, detail.
        """)

    /// Tombstones asked for at a time.
    private static let page = 1000

    @OptionGroup var common: CommonOptions
    @OptionGroup var target: RegistrationTarget

    @Option(help: ArgumentHelp("Only what went at this time or later (RFC 3339).", valueName: "time"))
    var since: TimeArgument?

    @Option(help: "Only what went for this cause.")
    var cause: Tombstone.Cause?

    @Flag(help: "Print one JSON object a line instead of text.")
    var json = false

    func run() async throws {
      let (name, store) = try await target.open(common, mustExist: true)
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
