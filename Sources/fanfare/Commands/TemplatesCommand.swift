import ArgumentParser
import FanfareCore
import Foundation
import Roles

/// `fanfare templates`
struct TemplatesCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "templates", abstract: "The templates of a hub, through the HTTP API.",
    discussion: ClientOptions.discussion,
    subcommands: [List.self, Show.self, Put.self, RemoveCommand<Template>.self, Preview.self])

  struct Template: RemovableAPIObject {
    let name: String
    let version: Int
    let createdAt: String
    let defaultLocale: String
    let locales: [String]?

    static let path = "/api/templates"
    static var columns: [Column<Self>] {
      [
        Column("name", \.name), Column("version", isNumber: true) { "\($0.version)" },
        Column("changed") { APITime.distance($0.createdAt) }, Column("default", \.defaultLocale),
        Column("locales") { $0.locales?.joined(separator: " ") },
      ]
    }

    static let removal = CommandConfiguration(
      commandName: "remove", abstract: "Removes templates.",
      discussion: "Needs the scope operate. Sends that use a version of them are still rendered.")
    static let names = ArgumentHelp("The templates' names.", valueName: "name")
  }

  private static func path(_ name: String) -> String { "\(Template.path)/\(APIClient.escaped(name))" }

  /// `fanfare templates list`
  struct List: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "list", abstract: "Lists the templates by name.",
      discussion: "Needs the scope read:all or operate. With --json one object a line, as the API has it.")

    @OptionGroup var connection: ClientOptions
    @OptionGroup var list: ListOptions<Template>

    func run() async throws { try await list.run(connection) }
  }

  /// `fanfare templates show`
  struct Show: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "show", abstract: "Prints a template as JSON.",
      discussion: "Needs the scope read:all or operate.")

    @OptionGroup var connection: ClientOptions

    @Argument(help: ArgumentHelp("The template's name.", valueName: "name"))
    var name: String

    @Option(help: ArgumentHelp("A version instead of the newest one.", valueName: "number"))
    var version: Int?

    func run() async throws {
      let text = try await connection.withClient { client in
        try await client.call(.GET, path(name), query: [("version", version.map(String.init))])
      }
      Console.print(jsonText: String(decoding: text, as: UTF8.self))
    }
  }

  /// `fanfare templates put`
  struct Put: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "put", abstract: "Stores a template, or its next version.",
      discussion: """
        Needs the scope operate. The file has the members defaultLocale and variants, as `show` prints them; other \
        members that `show` prints are left out. Prints the version. The status is 1 for a file that cannot be used.
        """)

    @OptionGroup var connection: ClientOptions

    @Argument(help: ArgumentHelp("The template's name.", valueName: "name"))
    var name: String

    @Argument(help: ArgumentHelp("A JSON file; - is the standard input.", valueName: "file"), completion: .file())
    var file: String

    @Flag(help: "Print the API's JSON instead of text.")
    var json = false

    func run() async throws {
      let data: Data
      do {
        data = try file == "-" ? FileHandle.standardInput.readToEnd() ?? Data() : Data(contentsOf: URL(filePath: file))
      } catch {
        throw UnusableFile(description: "\(file) cannot be read")
      }
      let body = try Self.body(data, named: file)
      let text = try await connection.withClient { try await $0.call(.PUT, path(name), body: body) }
      if json { return Console.print(jsonText: String(decoding: text, as: UTF8.self)) }
      let template = try JSONDecoder().decode(Template.self, from: text)
      Console.print(Printable.line("\(template.name): version \(template.version)"))
    }

    /// A file that cannot be read or contains no JSON object.
    struct UnusableFile: Error, CustomStringConvertible {
      let description: String
    }

    /// The body for a file. Throws `UnusableFile` if it is not a JSON object.
    static func body(_ data: Data, named file: String) throws -> Data {
      // The parser's versions name different positions.
      guard var members = try? JSONSerialization.jsonObject(with: data) as? [String: Any] else {
        throw UnusableFile(description: "\(file) must be a JSON object")
      }
      for member in ["name", "version", "createdAt"] { members[member] = nil }
      return try JSONSerialization.data(withJSONObject: members, options: [.sortedKeys])
    }
  }

  /// `fanfare templates preview`
  struct Preview: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "preview", abstract: "Prints what a template makes of some values, as JSON.",
      discussion: "Needs the scope read:all or operate.")

    @OptionGroup var connection: ClientOptions

    @Argument(help: ArgumentHelp("The template's name.", valueName: "name"))
    var name: String

    @Option(help: ArgumentHelp("A value that the template inserts; repeatable.", valueName: "key=value"))
    var property: [String] = []

    @Option(help: ArgumentHelp("For the device with this registration id.", valueName: "id"))
    var registration: String?

    @Option(help: "For devices of this platform; all without it.")
    var platform: PlatformArgument?

    @Option(help: ArgumentHelp("For devices in this language.", valueName: "locale"))
    var locale: String?

    @Option(help: ArgumentHelp("A version instead of the newest one.", valueName: "number"))
    var version: Int?

    func validate() throws {
      try Pairs.validate(property, of: "--property")
      guard registration == nil || platform == nil && locale == nil else {
        throw ValidationError("--registration takes the place of --platform and --locale")
      }
    }

    func run() async throws {
      var body: [String: Any] = ["properties": Pairs.values(property)]
      body["registration"] = registration
      body["platform"] = platform?.platform.name
      body["locale"] = locale
      body["version"] = version
      let data = try JSONSerialization.data(withJSONObject: body, options: [.sortedKeys])
      let text = try await connection.withClient { try await $0.call(.POST, path(name) + "/preview", body: data) }
      Console.print(jsonText: String(decoding: text, as: UTF8.self))
    }
  }
}
