import ArgumentParser
import FanfareCore
import Foundation
import Roles

/// `fanfare devices`
struct DevicesCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "devices", abstract: "Lists, shows and removes registered devices through the HTTP API.",
    discussion: ClientOptions.discussion, subcommands: [List.self, Show.self, RemoveCommand<Device>.self])

  /// A registration as the HTTP API reports it; the handle is left out.
  struct Device: RemovableAPIObject {
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

    static let path = "/api/registrations"
    static let greatestCount = 100_000
    static var columns: [Column<Self>] {
      [
        Column("id", \.id), Column("user", \.user), Column("platform", \.platform),
        Column("last seen") { APITime.distance($0.lastSeen) }, Column("tags") { $0.tags?.joined(separator: " ") },
      ]
    }

    static let removal = CommandConfiguration(
      commandName: "remove", abstract: "Removes devices; their apps have to register again.")
    static let names = ArgumentHelp("The ids of the registrations.", valueName: "id")
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

    @OptionGroup var list: ListOptions<Device>

    func validate() throws {
      guard (user == nil) != (tag == nil) else { throw ValidationError("give one of --user and --tag") }
    }

    func run() async throws { try await list.run(connection, query: [("user", user), ("tag", tag)]) }
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
        try await client.call(.GET, "\(Device.path)/\(APIClient.escaped(id))")
      }
      if json { return Console.print(jsonText: String(decoding: text, as: UTF8.self)) }
      let device = try JSONDecoder().decode(Device.self, from: text)
      let now = SystemWallClock().now()
      let fields: [(String, String?)] = [
        ("id", device.id), ("user", device.user), ("platform", device.platform),
        ("installation", device.installation), ("tags", device.tags?.joined(separator: " ")),
        ("template", device.template.map { $0.name ?? "without a name" }), ("tile", device.tile),
        ("locale", device.locale), ("time zone", device.timeZone),
        ("attributes", device.attributes?.map { "\($0.key)=\($0.value)" }.sorted().joined(separator: " ")),
        ("created", APITime.text(device.createdAt, at: now)),
        ("registered", APITime.text(device.registeredAt, at: now)),
        ("last seen", APITime.text(device.lastSeen, at: now)),
      ]
      Console.print(fields: fields, width: 14)
    }
  }
}
