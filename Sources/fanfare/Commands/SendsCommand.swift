import ArgumentParser
import FanfareCore
import Foundation
import Roles

/// `fanfare sends`
struct SendsCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "sends", abstract: "Lists, shows and cancels sends through the HTTP API.",
    discussion: ClientOptions.discussion, subcommands: [List.self, Show.self, Cancel.self])

  /// `fanfare sends list`
  struct List: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "list", abstract: "Lists sends, the newest first.",
      discussion: """
        Without the scope read:all it lists the caller's own sends. On a terminal lines are truncated to its width. \
        With --json one object a line, as the API has it.
        """)

    @OptionGroup var connection: ClientOptions

    @Option(help: "Only sends in this state.")
    var state: SendReport.State?

    @Option(help: "Only broadcasts, or only sends to one user or device.")
    var kind: SendQuery.Kind?

    @Option(help: ArgumentHelp("Only sends that this user posted or receives.", valueName: "name"))
    var user: String?

    @Option(
      parsing: .unconditional,
      help: ArgumentHelp("Only sends accepted at this time or later; \(TimeArgument.help).", valueName: "time"))
    var from: TimeArgument?

    @Option(
      parsing: .unconditional,
      help: ArgumentHelp("Only sends accepted before this time; \(TimeArgument.help).", valueName: "time"))
    var until: TimeArgument?

    @OptionGroup var list: ListOptions<SendAnswer>

    func validate() throws {
      if let from, let until, from.time >= until.time { throw ValidationError("--from must be before --until") }
    }

    func run() async throws {
      let query = [
        ("state", state?.rawValue), ("kind", kind?.rawValue), ("user", user), ("from", from?.time.description),
        ("until", until?.time.description),
      ]
      try await list.run(connection, query: query)
    }
  }

  /// `fanfare sends show`
  struct Show: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "show", abstract: "Shows one send: its state, its way and its devices.",
      discussion: "With --json the API's answer.")

    @OptionGroup var connection: ClientOptions

    @Argument(help: ArgumentHelp("The send's id.", valueName: "id"))
    var send: SendArgument

    @Flag(help: "Print the API's JSON instead of text.")
    var json = false

    func run() async throws {
      let found = try await connection.withClient { try await $0.send(send.id.description) }
      guard let (answer, text) = found else {
        throw ValidationError("there is no send \(send.id), or you may not see it, or it was accepted a moment ago")
      }
      if json { return Console.print(jsonText: String(decoding: text, as: UTF8.self)) }
      Console.print(fields: answer.fields(at: SystemWallClock().now()), width: 11)
      for table in answer.tables {
        Console.print()
        table.print()
      }
    }
  }

  /// `fanfare sends cancel`
  struct Cancel: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "cancel", abstract: "Cancels scheduled sends and broadcasts.",
      discussion: "One's own; with the scope operate everybody's. With --json the API's answers, one a line.")

    @OptionGroup var connection: ClientOptions

    @Argument(help: ArgumentHelp("The ids of the sends.", valueName: "id"))
    var sends: [SendArgument]

    @Flag(help: "Print the API's JSON instead of text.")
    var json = false

    func run() async throws {
      try await connection.withClient { client in
        for send in sends { try await client.steer(send, "cancel", isJSON: json) }
      }
    }
  }
}

extension SendReport.State: ExpressibleByArgument {}
extension SendQuery.Kind: ExpressibleByArgument {}

extension APIClient {
  /// Cancels, pauses or resumes a send, or changes its rate, and prints the result.
  func steer(_ send: SendArgument, _ act: String, body: Data? = nil, isJSON: Bool) async throws {
    let json = try await call(.POST, "/api/sends/\(send.id)/\(act)", body: body)
    if isJSON { return Console.print(jsonText: String(decoding: json, as: UTF8.self)) }
    let answer = try JSONDecoder().decode(SendAnswer.self, from: json)
    Console.print("\(send.id): \(SendWatch.text(answer, rate: nil))")
  }
}
