import ArgumentParser
import FanfareCore
import Foundation
import Roles

/// A kind of object of the HTTP API: the one declaration of how commands list it.
protocol APIObject: Decodable {
  /// Where the API has the objects. The last part of the path is their name in the plural, and that of the member in the
  /// API's answer.
  static var path: String { get }
  static var columns: [Column<Self>] { get }
  /// How many a command lists by default.
  static var usualCount: Int { get }
  /// How many it lists at most.
  static var greatestCount: Int { get }
}

extension APIObject {
  static var usualCount: Int { 100 }
  static var greatestCount: Int { 10_000 }
  fileprivate static var member: String { String(path.split(separator: "/").last ?? "") }
}

/// A kind of object that a command removes by its name or id.
protocol RemovableAPIObject: APIObject {
  static var removal: CommandConfiguration { get }
  /// The argument of the command.
  static var names: ArgumentHelp { get }
}

/// The options of the commands that list objects, and the list.
struct ListOptions<Row: APIObject>: ParsableArguments {
  @Option(help: ArgumentHelp("The most \(Row.member) to list, 1 to \(Row.greatestCount).", valueName: "count"))
  var limit = Row.usualCount

  @Flag(help: "Print one JSON object a line instead of a table.")
  var json = false

  func validate() throws {
    guard (1...Row.greatestCount).contains(limit) else {
      throw ValidationError("--limit must be 1 to \(Row.greatestCount)")
    }
  }

  /// Prints the objects that match the query, page by page: as a table, or as the API's objects, one a line.
  func run(_ connection: ClientOptions, query: [(String, String?)] = []) async throws {
    let found = try await connection.withClient { try await objects($0, query) }
    if json { return try Console.print(objects: found) }
    let rows = try found.map { object in
      try JSONDecoder().decode(Row.self, from: JSONSerialization.data(withJSONObject: object))
    }
    TextTable(Row.columns, rows).print()
  }

  private func objects(_ client: APIClient, _ query: [(String, String?)]) async throws -> [[String: Any]] {
    var (found, cursor): ([[String: Any]], String?) = ([], nil)
    repeat {
      let further = [("limit", "\(min(100, limit - found.count))"), ("cursor", cursor)]
      let answer = try await client.call(.GET, Row.path, query: query + further)
      // An answer of another form has none of the members.
      let object = try JSONSerialization.jsonObject(with: answer) as? [String: Any] ?? [:]
      found += object[Row.member] as? [[String: Any]] ?? []
      cursor = object["next"] as? String
    } while cursor != nil && found.count < limit
    return found
  }
}

/// Removes the named objects, and prints their names.
struct RemoveCommand<Object: RemovableAPIObject>: AsyncParsableCommand {
  static var configuration: CommandConfiguration { Object.removal }

  @OptionGroup var connection: ClientOptions

  @Argument(help: Object.names)
  var names: [String]

  @Flag(help: "Print one JSON object a line instead of text.")
  var json = false

  func run() async throws {
    try await connection.withClient { client in
      for name in names {
        _ = try await client.call(.DELETE, "\(Object.path)/\(APIClient.escaped(name))")
        if json {
          try Console.print(json: ["removed": name])
        } else {
          Console.print(Printable.line("\(name): removed"))
        }
      }
    }
  }
}

extension Console {
  /// Prints the lines that describe one object: names in a column of this width, and values. Those without a value are
  /// left out.
  static func print(fields: [(String, String?)], width: Int) {
    for case (let name, let value?) in fields {
      print(Printable.line(name.padding(toLength: width, withPad: " ", startingAt: 0) + value))
    }
  }
}

/// A time of the API for people.
enum APITime {
  /// Its distance from now: `2 h ago`.
  static func distance(_ time: String?) -> String? {
    time.flatMap { UnixTime($0) }?.relative(to: SystemWallClock().now())
  }

  /// The time and its distance.
  static func text(_ time: String?, at now: UnixTime) -> String? {
    time.map { text in UnixTime(text).map { "\(text) (\($0.relative(to: now)))" } ?? text }
  }
}
