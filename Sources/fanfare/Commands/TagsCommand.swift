import ArgumentParser
import Foundation
import Roles

/// `fanfare tags`
struct TagsCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "tags", abstract: "The tags of a hub's devices, through the HTTP API.",
    discussion: ClientOptions.discussion, subcommands: [Size.self])

  /// `fanfare tags size`
  struct Size: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "size", abstract: "Counts the registrations with each of the tags.",
      discussion: "Needs the scope read:all. With --json one object a line: tag, registrations.")

    private struct Answer: Codable {
      let tag: String
      let registrations: Int
    }

    @OptionGroup var connection: ClientOptions

    @Argument(help: ArgumentHelp("The tags.", valueName: "tag"))
    var tags: [String]

    @Flag(help: "Print one JSON object a line instead of a table.")
    var json = false

    func run() async throws {
      let answers = try await connection.withClient { client in
        var answers: [Answer] = []
        for tag in tags {
          answers.append(try await client.call(.GET, "/api/tags/\(APIClient.escaped(tag))", as: Answer.self))
        }
        return answers
      }
      if json { return try answers.forEach { try Console.print(json: $0) } }
      TextTable(
        [Column("tag", \.tag), Column("registrations", isNumber: true) { "\($0.registrations)" }], answers
      ).print()
    }
  }
}
