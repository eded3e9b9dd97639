import ArgumentParser
import FanfareCore
import Foundation
import Roles

/// `fanfare devices`
struct DevicesCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "devices", abstract: "Lists, shows and removes registered devices through the HTTP API.",
    discussion: ClientOptions.discussion, subcommands: [List.self, Show.self, Remove.self])

  /// A registration as the HTTP API reports it; the handle is left out.
  struct Device: Decodable {
    let id: String
    let user: String?
    let platform: String
    let tags: [String]?
    let installation: String?
    let registeredAt: String?
    let createdAt: String?
    let lastSeen: String?
    let locale: String?
    let timeZone: String?
    let attributes: [String: String]?
    /// Set if the registration exists for a template alone.
    let template: Template?
    let tile: String?

    struct Template: Decodable {
      let name: String?
    }

    static var columns: [Column<Self>] {
      [
        Column("id", \.id), Column("user", \.user), Column("platform", \.platform),
        Column("last seen") { ClientOptions.distance($0.lastSeen) },
        Column("tags") { $0.tags?.joined(separator: " ") },
      ]
    }
  }

  /// `fanfare devices list`
  struct List: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "list", abstract: "Lists the devices of a user or with a tag.",
      discussion: """
        Other users' devices need the scope read:all. The table has no handles; with --json one object a line, as the \
        API has it, handles included: protect the output.
        """)

    @OptionGroup var connection: ClientOptions

    @Option(help: ArgumentHelp("The devices of this user.", valueName: "name"))
    var user: String?

    @Option(help: ArgumentHelp("The devices with this tag.", valueName: "tag"))
    var tag: String?

    @Option(help: ArgumentHelp("The most devices to list, 1 to 100000.", valueName: "count"))
    var limit = 100

    @Flag(help: "Print one JSON object a line instead of a table.")
    var json = false

    func validate() throws {
      guard (user == nil) != (tag == nil) else { throw ValidationError("give one of --user and --tag") }
      guard (1...100_000).contains(limit) else { throw ValidationError("--limit must be 1 to 100000") }
    }

    func run() async throws {
      try await connection.list(
        "/api/registrations", member: "registrations", query: [("user", user), ("tag", tag)], limit: limit, page: 100,
        isJSON: json, Device.columns)
    }
  }

  /// `fanfare devices show`
  struct Show: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "show", abstract: "Shows one device.",
      discussion: "The text has no handle; with --json the API's answer, with it.")

    @OptionGroup var connection: ClientOptions

    @Argument(help: ArgumentHelp("The registration's id.", valueName: "id"))
    var id: String

    @Flag(help: "Print the API's JSON instead of text.")
    var json = false

    func run() async throws {
      let text = try await connection.withClient { client in
        try await client.call(.GET, "/api/registrations/\(APIClient.escaped(id))")
      }
      if json { return Console.print(jsonText: String(decoding: text, as: UTF8.self)) }
      let device = try JSONDecoder().decode(Device.self, from: text)
      let now = SystemWallClock().now()
      func time(_ text: String?) -> String? {
        text.map { text in UnixTime(text).map { "\(text) (\($0.relative(to: now)))" } ?? text }
      }
      let lines: [(String, String?)] = [
        ("id", device.id), ("user", device.user), ("platform", device.platform),
        ("installation", device.installation), ("tags", device.tags?.joined(separator: " ")),
        ("template", device.template.map { $0.name ?? "without a name" }), ("tile", device.tile),
        ("locale", device.locale),
        ("time zone", device.timeZone),
        ("attributes", device.attributes?.map { "\($0.key)=\($0.value)" }.sorted().joined(separator: " ")),
        ("created", time(device.createdAt)), ("registered", time(device.registeredAt)),
        ("last seen", time(device.lastSeen)),
      ]
      for case (let name, let value?) in lines {
        Console.print(Printable.line(name.padding(toLength: 14, withPad: " ", startingAt: 0) + value))
      }
    }
  }

  /// `fanfare devices remove`
  struct Remove: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "remove", abstract: "Removes devices; their apps have to register again.")

    @OptionGroup var connection: ClientOptions

    @Argument(help: ArgumentHelp("The ids of the registrations.", valueName: "id"))
    var ids: [String]

    @Flag(help: "Print one JSON object a line instead of text.")
    var json = false

    func run() async throws {
      try await connection.remove(ids, under: "/api/registrations", isJSON: json)
    }
  }
}
