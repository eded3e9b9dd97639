import ArgumentParser
import Foundation
import Roles

/// `fanfare send`
struct SendCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "send",
    abstract: "Sends a notification through the HTTP API.",
    discussion: """
      Prints the id of the send once it is accepted: from then on it cannot be lost. \(ClientOptions.discussion)

      With --wait it follows the send until it has ended, and the status is 0 if it was settled, otherwise 1. With \
      --json it prints the API's answers, one a line.
      """)

  @OptionGroup(title: "Audience") var audience: AudienceOptions
  @OptionGroup(title: "Message") var message: MessageOptions
  @OptionGroup var connection: ClientOptions
  @OptionGroup var following: FollowOptions

  @Flag(help: "Follow the send until it has ended.")
  var wait = false

  func run() async throws {
    try await connection.withClient { client in
      let id = try await client.post(message, to: audience, isJSON: following.json)
      if wait { try await following.follow(id, with: client) }
    }
  }
}

/// The options of the commands that follow a send.
struct FollowOptions: ParsableArguments {
  @Option(help: ArgumentHelp("Stop following after this time: seconds, or with units such as 15m.", valueName: "time"))
  var timeout: SpanArgument?

  @Flag(help: "Print the API's answers as JSON, one a line.")
  var json = false

  /// Follows the send until it has ended. Throws status 1 unless it was settled.
  func follow(_ id: String, with client: APIClient) async throws {
    let watch = SendWatch(client: client, id: id, isJSON: json, timeout: timeout?.duration)
    guard try await watch.run().isSuccess else { throw ExitCode.failure }
  }
}
