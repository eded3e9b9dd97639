import ArgumentParser
import FoundationEssentials

/// The options of every role.
struct CommonOptions: ParsableArguments {
  @Option(name: .long, help: ArgumentHelp("The YAML configuration file.", valueName: "file"))
  var config: String?

  /// The settings of the file and the environment; says which of its variables have no effect. Throws `SettingsError`.
  func settings() async throws -> Settings {
    let environment = ProcessInfo.processInfo.environment
    let fallback = "fanfare.yaml"
    let file =
      config ?? environment["FANFARE_CONFIG"] ?? (FileManager.default.fileExists(atPath: fallback) ? fallback : nil)
    let settings = try await Settings.load(file: file, environment: environment)
    if !settings.unknownVariables.isEmpty {
      let names = settings.unknownVariables.joined(separator: ", ")
      Console.error("fanfare: no key has the variable \(names); deploy/fanfare.yaml lists all keys")
    }
    return settings
  }

  /// The process that the settings describe, with logging and metrics set up.
  func runtime(_ role: String) async throws -> Runtime {
    try Runtime(role: role, settings: try await settings())
  }
}
