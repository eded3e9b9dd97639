import ArgumentParser
import FanfareCore
import Foundation
import Roles

/// The options that say to whom a send goes.
struct AudienceOptions: ParsableArguments {
  @Option(help: ArgumentHelp("To the devices of this user.", valueName: "name"))
  var user: String?

  @Option(
    help: ArgumentHelp(
      "To the devices with this tag; repeat the option for devices with any of several.", valueName: "tag"))
  var tag: [String] = []

  @Option(
    help: ArgumentHelp("To the devices whose tags match, such as \"(news && !muted) || vip\".", valueName: "expression")
  )
  var expression: String?

  @Option(help: ArgumentHelp("To the device with this registration id.", valueName: "id"))
  var registration: String?

  @Flag(help: "To all devices of the hub.")
  var everyone = false

  func validate() throws {
    let given = [user != nil, !tag.isEmpty, expression != nil, registration != nil, everyone].count { $0 }
    guard given == 1 else {
      throw ValidationError("give one of --user, --tag, --expression, --registration and --everyone")
    }
  }

  /// The member `to` of a send.
  var json: [String: Any] {
    if let user { return ["user": user] }
    if tag.count == 1 { return ["tag": tag[0]] }
    if !tag.isEmpty { return ["tags": tag] }
    if let expression { return ["expression": expression] }
    if let registration { return ["registration": registration] }
    return ["everyone": true]
  }
}

/// The options that say what a send brings, and how.
struct MessageOptions: ParsableArguments {
  @Option(help: ArgumentHelp("The title that devices show.", valueName: "text"))
  var title: String?

  @Option(help: ArgumentHelp("The text that devices show.", valueName: "text"))
  var body: String?

  @Option(help: ArgumentHelp("A value for the app; repeatable.", valueName: "key=value"))
  var data: [String] = []

  @Option(help: ArgumentHelp("The number on the app's icon.", valueName: "number"))
  var badge: Int?

  @Option(help: ArgumentHelp("The sound's name.", valueName: "name"))
  var sound: String?

  @Option(
    help: ArgumentHelp(
      "Instead of a message: the template of the hub, or of the devices, to render.", valueName: "name"))
  var template: String?

  @Option(help: ArgumentHelp("A value that the template inserts; repeatable.", valueName: "key=value"))
  var property: [String] = []

  @Option(help: ArgumentHelp("The time to live: seconds, or with units such as 15m and 1d.", valueName: "time"))
  var ttl: SpanArgument?

  @Option(help: "Only devices of this platform; repeatable.")
  var platform: [PlatformArgument] = []

  @Option(help: ArgumentHelp("high or normal.", valueName: "priority"), completion: .list(["high", "normal"]))
  var priority: String?

  @Option(help: ArgumentHelp("Sends with the same key replace one another on the device.", valueName: "key"))
  var collapseKey: String?

  @Option(help: ArgumentHelp("The most pushes a second of a broadcast, by all workers together.", valueName: "number"))
  var maxPerSecond: Int?

  @Option(
    parsing: .unconditional,
    help: ArgumentHelp("Hold the send until then; \(TimeArgument.help).", valueName: "time"))
  var sendAt: TimeArgument?

  @Option(
    help: ArgumentHelp(
      "The command may be repeated with the same key for a day without sending twice.", valueName: "key"))
  var idempotencyKey: String?

  func validate() throws {
    let hasMessage = title != nil || body != nil || !data.isEmpty || badge != nil
    guard hasMessage || template != nil else {
      throw ValidationError("there is nothing to send: give --title, --body, --data, --badge or --template")
    }
    guard template == nil || !hasMessage && sound == nil else {
      throw ValidationError("--template takes the place of --title, --body, --data, --badge and --sound")
    }
    guard template != nil || property.isEmpty else { throw ValidationError("--property needs --template") }
    try Pairs.validate(data, of: "--data")
    try Pairs.validate(property, of: "--property")
    if let priority, !["high", "normal"].contains(priority) {
      throw ValidationError("--priority must be high or normal")
    }
  }

  /// The body of `POST /api/sends`.
  func json(to audience: AudienceOptions) throws -> Data {
    var message: [String: Any] = [:]
    message["title"] = title
    message["body"] = body
    message["badge"] = badge
    message["sound"] = sound
    if !data.isEmpty { message["data"] = Pairs.values(data) }
    var send: [String: Any] = ["to": audience.json]
    if let template {
      send["template"] = ["name": template, "properties": Pairs.values(property)] as [String: Any]
    } else {
      send["message"] = message
    }
    send["ttl"] = ttl.map { Int($0.duration.components.seconds) }
    if !platform.isEmpty { send["platforms"] = platform.map(\.platform.name) }
    send["priority"] = priority
    send["collapseKey"] = collapseKey
    send["maxPerSecond"] = maxPerSecond
    send["sendAt"] = sendAt?.time.description
    return try JSONSerialization.data(withJSONObject: send, options: [.sortedKeys])
  }
}

/// Arguments of the form key=value.
enum Pairs {
  static func validate(_ pairs: [String], of option: String) throws {
    for pair in pairs where !pair.contains("=") || pair.hasPrefix("=") {
      throw ValidationError("\(option) must be key=value")
    }
  }

  /// The values by key; of a repeated key the last one.
  static func values(_ pairs: [String]) -> [String: String] {
    let parts = pairs.map { $0.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(String.init) }
    return Dictionary(parts.map { ($0[0], $0[1]) }) { $1 }
  }
}

extension APIClient {
  /// Posts a send, prints its id or the API's answer, and returns the id. A repetition with the same key is the same
  /// send: without one in the options a random one is used, and named if it is unknown what became of the request.
  func post(_ message: MessageOptions, to audience: AudienceOptions, isJSON: Bool) async throws -> String {
    let key = message.idempotencyKey ?? UUID().uuidString.lowercased()
    let body = try message.json(to: audience)
    let json: Data
    do {
      json = try await call(.POST, "/api/sends", body: body, headers: [("idempotency-key", key)])
    } catch {
      if (error as? APIRefusal)?.isOutcomeUnknown ?? (error is APIUnreachable) {
        throw UnknownOutcome(cause: "\(error)", key: key)
      }
      throw error
    }
    let id = try JSONDecoder().decode(AcceptedAnswer.self, from: json).id
    if isJSON { Console.print(jsonText: String(decoding: json, as: UTF8.self)) } else { Console.print(id) }
    return id
  }
}

/// A send that may have been accepted.
private struct UnknownOutcome: WordedError {
  let cause: String
  let key: String

  var description: String { "\(cause); it may have been accepted: repeat it with --idempotency-key \(key)" }
}
