import ArgumentParser
import FanfareCore
import Foundation
import Roles

/// `fanfare broadcast`
struct BroadcastCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "broadcast", abstract: "Starts, follows and steers broadcasts through the HTTP API.",
    discussion: ClientOptions.discussion,
    subcommands: [Start.self, Watch.self, Pause.self, Resume.self, Cancel.self, Rate.self])

  /// `fanfare broadcast start`
  struct Start: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "start", abstract: "Starts a broadcast and follows it.",
      discussion: """
        The same as `fanfare send --wait`, for many devices. The interrupt key ends the command and not the \
        broadcast; `fanfare broadcast watch` follows it again.
        """)

    @OptionGroup(title: "Audience") var audience: AudienceOptions
    @OptionGroup(title: "Message") var message: MessageOptions
    @OptionGroup var connection: ClientOptions
    @OptionGroup var following: FollowOptions

    @Flag(help: "Print the id and end.")
    var detach = false

    func run() async throws {
      try await connection.withClient { client in
        let id = try await client.post(message, to: audience, isJSON: following.json)
        if !detach { try await following.follow(id, with: client) }
      }
    }
  }

  /// `fanfare broadcast watch`
  struct Watch: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "watch", abstract: "Follows a broadcast until it has ended.",
      discussion: """
        On a terminal a bar with the outcomes, the rate of the last five seconds and the time left; elsewhere a line \
        for each change; with --json the API's answers. Status 0 if it was settled, otherwise 1.
        """)

    @OptionGroup var connection: ClientOptions
    @OptionGroup var following: FollowOptions

    @Argument(help: ArgumentHelp("The send's id.", valueName: "id"))
    var send: SendArgument

    func run() async throws {
      try await connection.withClient { try await following.follow(send.id.description, with: $0) }
    }
  }

  /// The argument and options of the commands that steer a broadcast.
  struct Steering: ParsableArguments {
    @OptionGroup var connection: ClientOptions

    @Argument(help: ArgumentHelp("The send's id.", valueName: "id"))
    var send: SendArgument

    @Flag(help: "Print the API's JSON instead of text.")
    var json = false

    func steer(_ act: String, body: Data? = nil) async throws {
      try await connection.withClient { try await $0.steer(send, act, body: body, isJSON: json) }
    }
  }

  /// `fanfare broadcast pause`
  struct Pause: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "pause", abstract: "Pauses a broadcast or a scheduled send.",
      discussion: "The pages that workers hold are pushed to their end; see `fanfare broadcast resume`.")

    @OptionGroup var steering: Steering

    func run() async throws { try await steering.steer("pause") }
  }

  /// `fanfare broadcast resume`
  struct Resume: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "resume", abstract: "Resumes a paused broadcast or scheduled send.")

    @OptionGroup var steering: Steering

    func run() async throws { try await steering.steer("resume") }
  }

  /// `fanfare broadcast cancel`
  struct Cancel: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "cancel", abstract: "Cancels a broadcast for good.",
      discussion: "The same as `fanfare sends cancel`: what was pushed stays pushed.")

    @OptionGroup var steering: Steering

    func run() async throws { try await steering.steer("cancel") }
  }

  /// `fanfare broadcast rate`
  struct Rate: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "rate", abstract: "Changes the most pushes a second of a broadcast.")

    @OptionGroup var steering: Steering

    @Argument(help: ArgumentHelp("Pushes a second, by all workers together, or none for no limit.", valueName: "rate"))
    var rate: RateArgument

    func run() async throws {
      let body = try JSONSerialization.data(withJSONObject: ["maxPerSecond": rate.perSecond as Any? ?? NSNull()])
      try await steering.steer("rate", body: body)
    }
  }
}

/// A rate on the command line: a whole number, or `none`.
struct RateArgument: ExpressibleByArgument {
  /// Nil for no limit.
  let perSecond: Int?

  init?(argument: String) {
    guard argument != "none" else {
      perSecond = nil
      return
    }
    guard let number = Int(argument), number > 0 else { return nil }
    perSecond = number
  }

  static var defaultCompletionKind: CompletionKind { .list(["none"]) }
}
