import ArgumentParser
import AzureHub
import FanfareCore
import FrontEnd
import Roles

/// `fanfare azure`
struct AzureCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "azure", abstract: "Takes the place of Azure Notification Hubs.",
    subcommands: [ConnectionString.self, Import.self])

  /// `fanfare azure connection-string`
  struct ConnectionString: ConfiguredCommand {
    static let configuration = CommandConfiguration(
      commandName: "connection-string",
      abstract: "Prints the connection string that an application uses in place of Azure's.",
      discussion: """
        The string contains a key of the rule. It goes to standard output, alone on its line. The host is that of \
        --host, else the first of azure.hosts, else the api's own; the hub's name is given to a client beside the \
        string, and stays as it was at Azure if hub.NAME.azure.names has it. Standard error names the clients that \
        cannot use the string, with --plain or azure.prefix.
        """)

    @OptionGroup var common: CommonOptions
    @OptionGroup var target: RegistrationTarget

    @Option(help: ArgumentHelp("The rule; default: the only one that the hub has.", valueName: "name"))
    var rule: String?

    @Option(help: ArgumentHelp("The host, and the port unless it is 443, by which clients reach the api."))
    var host: String?

    @Flag(help: "Print the secondary key.")
    var secondary = false

    @Flag(help: "Print a string for plain HTTP, which some clients accept.")
    var plain = false

    func run() async throws {
      let settings = try common.settings()
      guard let hub = settings.hubs.first(where: { $0.name.rawValue == target.hub }) else {
        throw ValidationError("--hub: there is no hub \(target.hub) in this deployment")
      }
      let rules = try hub.sharedAccessRules(settings.azure)
      guard let found = rules.first(where: { rule == nil || $0.name == rule }), rule != nil || rules.count == 1 else {
        let names = rules.map(\.name).joined(separator: ", ")
        throw ValidationError(
          rules.isEmpty
            ? "--hub: the hub has no shared access rules; see hub.\(hub.name).azure.rulesFile"
            : "--rule must be one of \(names)")
      }
      guard let key = secondary ? found.keys.dropFirst().first : found.keys.first else {
        throw ValidationError("--secondary: the rule \(found.name) has one key only")
      }
      if !settings.azure.isEnabled {
        Console.error("fanfare: azure.enabled is false: until it is true, no client can use the string")
      }
      let api = settings.api.frontEnd
      let address = host ?? settings.azure.hosts.first ?? Self.address(api.host, api.port, isPlain: plain)
      for note in Self.excludedClients(prefix: settings.azure.prefix, isPlain: plain) {
        Console.error("fanfare: \(note)")
      }
      let path = settings.azure.prefix.map { "\($0)/" }.joined()
      Console.print(
        "Endpoint=\(plain ? "http" : "sb")://\(address)/\(path);SharedAccessKeyName=\(found.name);"
          + "SharedAccessKey=\(key)")
    }

    /// Which clients cannot use a string, in words for its user.
    static func excludedClients(prefix: [String], isPlain: Bool) -> [String] {
      var notes: [String] = []
      if !prefix.isEmpty {
        notes.append(
          "the clients for .NET and JavaScript, and azure-sb of npm, do not keep the path of azure.prefix: they cannot "
            + "use the string")
      }
      if isPlain { notes.append("the clients for .NET and JavaScript always use TLS: they cannot use the string") }
      return notes
    }

    private static func address(_ host: String, _ port: Int, isPlain: Bool) -> String {
      let name = host.contains(":") ? "[\(host)]" : host
      return port == (isPlain ? 80 : 443) ? name : "\(name):\(port)"
    }
  }
}
