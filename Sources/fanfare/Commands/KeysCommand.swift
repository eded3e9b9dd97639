import ArgumentParser
import FanfareCore
import FrontEnd
import Operations
import Roles

/// `fanfare keys`
struct KeysCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "keys",
    abstract: "Creates, lists and revokes the API keys of a hub's backends.",
    discussion: """
      A backend sends its key as a bearer token: `Authorization: Bearer fanfare_…`. The registry keeps only a digest of \
      a key. Any number of keys of one user is valid at a time: to rotate a key, create another one, install it, and \
      revoke the old one. Needs registry.path or registry.postgres.url.
      """,
    subcommands: [Create.self, List.self, Revoke.self])

  /// `fanfare keys create`
  struct Create: ConfiguredCommand {
    static let configuration = CommandConfiguration(
      commandName: "create",
      abstract: "Creates an API key, and prints it once.",
      discussion: """
        The key goes to standard output, alone on its line; it cannot be shown again. With --json one object: key, id, \
        user, scopes, createdAt, expiresAt, comment.
        """)

    @OptionGroup var common: CommonOptions
    @OptionGroup var target: RegistrationTarget

    @Option(help: ArgumentHelp("The user that the backend acts as.", valueName: "name"))
    var user: String

    @Option(name: .customLong("scope"), help: "A scope of the key; repeat the option for several.")
    var scopes: [Scope]

    @Option(help: ArgumentHelp("The key expires after this many days, 1 to 3650; default: never.", valueName: "days"))
    var expiresInDays: Int?

    @Option(help: ArgumentHelp("A note for operators.", valueName: "text"))
    var comment = ""

    @Flag(help: "Print one JSON object instead of the key.")
    var json = false

    func validate() throws {
      guard UserName.isValid(user) else { throw ValidationError("--user must be \(UserName.rule)") }
      guard !scopes.isEmpty else { throw ValidationError("--scope is missing: name at least one scope") }
      guard (1...3650).contains(expiresInDays ?? 1) else {
        throw ValidationError("--expires-in-days must be 1 to 3650")
      }
      guard comment.utf8.count <= StoredAPIKey.maximumCommentLength,
        comment.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F })
      else {
        throw ValidationError(
          "--comment must have at most \(StoredAPIKey.maximumCommentLength) bytes and no control characters")
      }
    }

    func run() async throws {
      let runtime = try common.runtime("keys")
      let (hub, store) = try await target.open(runtime.settings)
      let (key, now) = (APIKey(), SystemWallClock().now())
      let stored = StoredAPIKey(
        hub: hub, id: key.id, user: user, scopes: Set(scopes).map(\.rawValue).sorted(), comment: comment,
        digest: key.digest, createdAt: now, expiresAt: expiresInDays.map { now + .seconds(Int64($0) * 86_400) })
      try await store.addAPIKey(stored)
      runtime.security.record(
        .keyCreated, user: user, hub: hub.rawValue,
        details: ["key": key.id, "scopes": stored.scopes.joined(separator: " ")])
      guard json else { return Console.print(key.text) }
      try Console.print(json: KeyLine(stored, secret: key.text))
    }
  }

  /// `fanfare keys list`
  struct List: ConfiguredCommand {
    static let configuration = CommandConfiguration(
      commandName: "list",
      abstract: "Lists the API keys of a hub, oldest first; never the keys themselves.",
      discussion: """
        One line each: id, time of creation, expiry or `-`, day of the last use or `-`, scopes, user, comment. The id \
        is the beginning of the key after `fanfare_`. With --json one object a line: id, user, scopes, createdAt, \
        expiresAt, lastUsed, comment.
        """)

    @OptionGroup var common: CommonOptions
    @OptionGroup var target: RegistrationTarget

    @Flag(help: "Print one JSON object a line instead of text.")
    var json = false

    func run() async throws {
      let (hub, store) = try await target.open(common, mustExist: true)
      for key in try await store.apiKeys(hub: hub) {
        let line = KeyLine(key)
        try Console.print(line, isJSON: json)
      }
    }
  }

  /// `fanfare keys revoke`
  struct Revoke: ConfiguredCommand {
    static let configuration = CommandConfiguration(
      commandName: "revoke",
      abstract: "Revokes an API key.",
      discussion: "Front ends refuse the key after at most five seconds. The status is 1 if there is no such key.")

    @OptionGroup var common: CommonOptions
    @OptionGroup var target: RegistrationTarget

    @Argument(help: "The key's id, as `fanfare keys list` prints it.")
    var id: String

    func validate() throws {
      guard APIKey.id(id) != nil else {
        throw ValidationError(
          "the id must be 12 letters and digits, as `fanfare keys list` prints it; never the whole key")
      }
    }

    func run() async throws {
      let runtime = try common.runtime("keys")
      let (hub, store) = try await target.open(runtime.settings, mustExist: true)
      guard let id = APIKey.id(id), try await store.removeAPIKey(id, hub: hub) else {
        Console.error("fanfare keys: there is no such key in the hub \(hub)")
        throw ExitCode.failure
      }
      runtime.security.record(.keyRevoked, hub: hub.rawValue, details: ["key": id])
      Console.print("revoked \(id)")
    }
  }
}

extension Scope: ExpressibleByArgument {}

/// An API key in the output of `fanfare keys`.
struct KeyLine: OutputLine {
  /// The key itself, only when it is created.
  let key: String?
  let id: String
  let user: String
  let scopes: [String]
  let createdAt: String
  let expiresAt: String?
  /// The day, `2026-11-21`.
  let lastUsed: String?
  let comment: String

  init(_ stored: StoredAPIKey, secret: String? = nil) {
    key = secret
    id = stored.id
    user = stored.user
    scopes = stored.scopes
    createdAt = stored.createdAt.description
    expiresAt = stored.expiresAt?.description
    lastUsed = stored.lastUsedDay.map { String($0.description.prefix(10)) }
    comment = stored.comment
  }

  /// The key as a line of text.
  var text: String {
    ([id, createdAt, expiresAt ?? "-", lastUsed ?? "-", scopes.joined(separator: ","), user]
      + (comment.isEmpty ? [] : [comment])).joined(separator: " ")
  }
}
