import ArgumentParser
import FanfareCore
import Logging
import Registry
import Roles

/// `fanfare registrations`
struct RegistrationsCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "registrations", abstract: "Imports, exports and inspects the registrations of a hub.",
    subcommands: [Import.self, Export.self, Tombstones.self, Restore.self])

  /// `fanfare registrations tombstones`
  struct Tombstones: ConfiguredCommand {
    static let configuration = CommandConfiguration(
      commandName: "tombstones",
      abstract: "Lists the registrations that are gone, oldest first: when, and why.",
      discussion: """
        One line each: time, id, cause, detail. The cause is dead (the push service no longer knows the device; the \
        detail is its reason), removed (by its user), merged (another registration has its handle; the detail is that \
        one's id), expired (its app made no contact for registry.expireAfterDays) or surplus (its user had more than \
        registry.maximumDevicesPerUser; the detail is the new one's id). They are kept for 30 days. Needs \
        registry.path or registry.postgres.url. With --json one object a line: registration, at, cause, detail.
        """)

    /// Tombstones per query.
    private static let page = 1000

    @OptionGroup var common: CommonOptions
    @OptionGroup var target: RegistrationTarget

    @Option(
      parsing: .unconditional,
      help: ArgumentHelp("Only registrations that went at this time or later; \(TimeArgument.help).", valueName: "time")
    )
    var since: TimeArgument?

    @Option(help: "Only registrations that went for this cause.")
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
          try Console.print(line, isJSON: json)
        }
        last = page.last
      } while page.count == Self.page
    }
  }
}

extension Tombstone.Cause: ExpressibleByArgument {}

/// A tombstone in the output of `fanfare registrations tombstones`.
struct TombstoneLine: OutputLine {
  let registration: String
  let at: String
  let cause: String
  let detail: String

  init(_ buried: BuriedRegistration) {
    registration = buried.registration.description
    at = buried.tombstone.at.description
    cause = buried.tombstone.cause.rawValue
    detail = buried.tombstone.detail
  }

  /// The tombstone as a line of text.
  var text: String {
    Printable.line(([at, registration, cause] + (detail.isEmpty ? [] : [detail])).joined(separator: " "))
  }
}

/// The option that selects a hub's registrations.
struct RegistrationTarget: ParsableArguments {
  @Option(help: "The hub.")
  var hub = HubName.default.rawValue

  func validate() throws {
    guard HubName(hub) != nil else { throw ValidationError("--hub must be a hub's name: \(HubName.rule)") }
  }

  /// Opens the store. Throws if the deployment has no such hub.
  ///
  /// `patience` and `mustExist` are those of `RegistrySettings.open`.
  func open(
    _ common: CommonOptions, patience: Duration = .zero, mustExist: Bool = false
  ) async throws -> (HubName, any RegistrySettings.Store) {
    try await open(try common.settings(), patience: patience, mustExist: mustExist)
  }

  /// Opens the store of a deployment with these settings, as `open` with the options does.
  func open(
    _ settings: Settings, patience: Duration = .zero, mustExist: Bool = false
  ) async throws -> (HubName, any RegistrySettings.Store) {
    guard let name = HubName(hub), settings.hubs.contains(where: { $0.name == name }) else {
      throw ValidationError("--hub: there is no hub \(hub) in this deployment")
    }
    let logger = Logger(label: "fanfare.registrations")
    let store = try await settings.registry.open(
      role: "registrations", patience: patience, mustExist: mustExist, logger: logger)
    return (name, store)
  }
}
