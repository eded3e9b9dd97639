package import ArgumentParser
import FoundationEssentials
import Operations
import RDKafka

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
  ) async throws -> Settings {
    let settings = try await Settings.load(file: file, environment: environment, readFurther: readFurther)
    if !settings.unknownVariables.isEmpty {
      let names = settings.unknownVariables.joined(separator: ", ")
      Console.error("fanfare: unknown environment variables: \(names); deploy/fanfare.yaml lists all keys")
    }
    return settings
  }

  /// Loads the settings and sets up logging and metrics.
  package func runtime(_ role: String) async throws -> Runtime {
    try Runtime(role: role, settings: try await settings())
  }

  /// Loads the settings and runs the role that `start` creates, until a signal ends it; see `RoleRun`.
  package func run(_ role: String, _ start: (Runtime) async throws -> RoleServices) async throws {
    // First: a signal would end the process by itself, with another status.
    let signals = await RoleRun.signals()
    let runtime = try await runtime(role)
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
      var command = try parseAsRoot()
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
      Console.error("\(name): \(Printable.line(await words(for: error, options)))")
      exit(withError: ExitCode.failure)
    }
  }

  /// The error in words, with the addresses of the deployment if the command has a configuration.
  private static func words(for error: any Error, _ options: CommonOptions?) async -> String {
    guard let options else { return ErrorWords(nil).text(error) }
    // A configuration that cannot be read has been reported already.
    return ErrorWords(try? await Settings.load(file: options.file, environment: options.environment)).text(error)
  }
}

/// A command with a configuration, to which its errors refer.
package protocol ConfiguredCommand: AsyncParsableCommand {
  var common: CommonOptions { get }
}

/// The versions of this program and of its compiler and libraries.
package enum Build {
  package static let version = "0.1.0"

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
