package import ArgumentParser
import FoundationEssentials
import Operations
import RDKafka
package import SettingsTable

/// The options of every role.
package struct CommonOptions: ParsableArguments {
  @Option(
    name: .long, help: ArgumentHelp("The YAML configuration file.", valueName: "file"),
    completion: .file(extensions: ["yaml", "yml"]))
  var config: String?

  package init() {}

  /// The configuration file; nil for none.
  package var file: String? {
    config ?? environment["FANFARE_CONFIG"]
      ?? ["fanfare.yaml", "/etc/fanfare/fanfare.yaml"].first { FileManager.default.fileExists(atPath: $0) }
  }

  package var environment: [String: String] { ProcessInfo.processInfo.environment }

  /// Loads the settings from the file and the environment, and prints the variables that have no effect.
  ///
  /// `readFurther` reads the keys that only the calling program has. Throws `SettingsError`.
  package func settings(
    readFurther: (SettingsReader) throws(SettingsError) -> Void = { _ in }
  ) throws -> Settings {
    let settings = try Settings.load(file: file, environment: environment, readFurther: readFurther)
    if !settings.unknownVariables.isEmpty {
      let names = settings.unknownVariables.joined(separator: ", ")
      Console.error("fanfare: unknown environment variables: \(names); deploy/fanfare.yaml lists all keys")
    }
    return settings
  }

  /// Loads the settings and sets up logging and metrics.
  package func runtime(_ role: String) throws -> Runtime {
    try Runtime(role: role, settings: try settings())
  }

  /// Loads the settings and runs the role that `start` creates, until a signal ends it; see `RoleRun`.
  package func run(_ role: String, _ start: (Runtime) async throws -> RoleServices) async throws {
    // First: a signal would end the process by itself, with another status.
    let signals = await RoleRun.signals()
    let runtime = try runtime(role)
    try await runtime.run(signals) { try await start(runtime) }
  }
}

extension AsyncParsableCommand {
  /// Runs the command line of a program.
  ///
  /// Unusable settings end it with status 78, EX_CONFIG of sysexits.h.
  package static func runProgram(named name: String) async {
    var options: CommonOptions?
    do {
      var command: any ParsableCommand
      do { command = try parseAsRoot() } catch {
        // The parser checks the values that it has found before it reports a name that it does not know.
        if exitCode(for: error) == .validationFailure {
          explainUnknownName(in: CommandLine.arguments.dropFirst(), name)
        }
        throw error
      }
      options = (command as? any ConfiguredCommand)?.common
      if var asynchronous = command as? any AsyncParsableCommand {
        try await asynchronous.run()
      } else {
        try command.run()
      }
      // Status 0 would tell a script that the output is complete.
      if let failure = Console.outputFailure {
        Console.error("\(name): standard output is incomplete: \(failure)")
        exit(withError: ExitCode.failure)
      }
    } catch {
      if let error = SettingsError(cause: error) {
        for mistake in error.mistakes { Console.error("\(name): \(mistake.line)") }
        exit(withError: ExitCode(78))
      }
      // Errors of the command line, and statuses that the command has explained itself.
      if error is ExitCode || exitCode(for: error) != .failure { exit(withError: error) }
      Console.error("\(name): \(Printable.line(words(for: error, options)))")
      exit(withError: ExitCode.failure)
    }
  }

  /// Ends the program if the arguments have an unknown option or command, which it names with the nearest known one.
  private static func explainUnknownName(in arguments: ArraySlice<String>, _ program: String) {
    guard let (unknown, command) = UnknownName.find(in: arguments, of: self, named: program) else { return }
    Console.error("Error: \(Printable.line(unknown))\n  See '\(command) --help' for more information.")
    exit(withError: ExitCode.validationFailure)
  }

  /// The error in words, with the addresses of the deployment if the command has a configuration.
  private static func words(for error: any Error, _ options: CommonOptions?) -> String {
    guard let options else { return ErrorWords(nil).text(error) }
    // A configuration that cannot be read has been reported already.
    return ErrorWords(try? Settings.load(file: options.file, environment: options.environment)).text(error)
  }
}

/// An option or a command that does not exist.
package enum UnknownName {
  /// The first one in the arguments of a command, in words, and the command that does not have it; nil if there is
  /// none.
  ///
  /// Values that begin with `--` count as options.
  package static func find(
    in arguments: ArraySlice<String>, of root: any ParsableCommand.Type, named program: String
  ) -> (words: String, command: String)? {
    var (command, path): (any ParsableCommand.Type, String) = (root, program)
    func unknown(_ kind: String, _ name: String, among known: [String]) -> (String, String) {
      let nearest = NearestName.of(name, among: known).map { ". Did you mean '\($0)'?" } ?? ""
      return ("Unknown \(kind) '\(name)'\(nearest)", path)
    }
    for argument in arguments {
      if argument == "--" { return nil }
      if argument.hasPrefix("--") {
        let name = String(argument.prefix { $0 != "=" })
        let known = options(of: command)
        if !known.contains(name) { return unknown("option", name, among: known) }
      } else if !argument.hasPrefix("-"), !command.configuration.subcommands.isEmpty {
        let commands = command.configuration.subcommands
        if argument == "help" { return nil }
        guard let found = commands.first(where: { $0.configuration.commandName == argument }) else {
          return unknown("command", argument, among: commands.compactMap { $0.configuration.commandName })
        }
        (command, path) = (found, "\(path) \(argument)")
      }
    }
    return nil
  }

  /// The names in the command's help.
  private static func options(of command: any ParsableCommand.Type) -> [String] {
    let words = command.helpMessage(includeHidden: true).split { !($0.isLetter || $0.isNumber || $0 == "-") }
    return Set(words.filter { $0.hasPrefix("--") && $0.count > 2 }.map(String.init)).sorted()
  }
}

/// A command with a configuration, to which its errors refer.
package protocol ConfiguredCommand: AsyncParsableCommand {
  var common: CommonOptions { get }
}

/// The versions of this program and of its compiler and libraries.
package enum Build {
  package static let version = "0.2.0"

  /// The Swift version it was compiled with, as precisely as conditional compilation can tell.
  static var swift: String {
    #if swift(>=6.3)
    "6.3"
    #else
    "6.2"
    #endif
  }

  /// For `fanfare_build_info`.
  static var information: BuildInformation {
    BuildInformation(version: version, swift: swift, librdkafka: Librdkafka.version)
  }
}
