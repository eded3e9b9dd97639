import FanfareCore
import FoundationEssentials
import FrontEnd
package import Logging
import RDKafka
package import SettingsTable

/// Finds all mistakes of a configuration: of its values, and of the files that it names.
package struct ConfigurationCheck: Sendable {
  /// A role that starts with the configuration.
  package enum Role: String, CaseIterable, Sendable { case api, worker, ledger, hooks }

  /// What the check has found.
  package struct Report: Sendable {
    /// In the order of the configuration file.
    package var mistakes: [SettingsMistake]
    /// The variables that have no effect.
    package var unknownVariables: [String] = []
    /// Nil if the values alone have mistakes.
    package var settings: Settings?
  }

  /// The configuration file; nil for none.
  private let file: String?
  private let environment: [String: String]
  private let roles: Set<Role>
  private let logger: Logger

  package init(file: String?, environment: [String: String], roles: Set<Role>, logger: Logger) {
    (self.file, self.environment, self.roles, self.logger) = (file, environment, roles, logger)
  }

  /// Reads the configuration, and the files that the roles read when they start. Opens no database.
  package func run() async throws -> Report {
    let reading: Settings.Reading
    do { reading = try Settings.read(file: file, environment: environment) } catch let error as SettingsError {
      return Report(mistakes: error.mistakes)
    }
    guard reading.mistakes.isEmpty, let settings = reading.settings else {
      return Report(mistakes: reading.mistakes, unknownVariables: reading.unknownVariables)
    }
    var mistakes: [SettingsMistake] = []
    func check(_ body: () async throws -> Void) async throws {
      do { try await body() } catch {
        guard let error = SettingsError(cause: error) else { throw error }
        for mistake in error.mistakes where !mistakes.contains(mistake) { mistakes.append(mistake) }
      }
    }
    try await check { _ = try TopicAdministrator(client: try settings.kafka.client("config"), logger: logger) }
    if roles.contains(.api) {
      try await check { try settings.api.requireProtection() }
      try await check { _ = try settings.api.tls?.makeTLS() }
      let hashing = settings.authentication.makeThreads()
      for hub in settings.hubs {
        try await check {
          _ = try hub.authenticators(
            boundTo: settings.api.reachableHost, authentication: settings.authentication, hashing: hashing,
            logger: logger)
        }
        try await check { _ = try await hub.tokenKeys(clock: SystemWallClock(), logger: logger) }
        try await check { _ = try hub.sharedAccess(settings.azure, clock: SystemWallClock(), logger: logger) }
      }
    }
    if roles.contains(.worker) {
      let runtime = Runtime(settings: settings, logger: logger)
      var count = 0
      for hub in settings.hubs { try await check { count += try hub.senders(runtime).count } }
      if mistakes.isEmpty { try await check { try WorkerRole.requirePlatform(count) } }
    }
    if roles.contains(.hooks) {
      for hook in settings.hooks {
        try await check { _ = try hook.hook() }
        try await check { _ = try hook.secrets() }
      }
    }
    mistakes = Settings.placed(mistakes, file: try file.map { try SettingsFile(path: $0) }, environment: environment)
    return Report(mistakes: mistakes, unknownVariables: reading.unknownVariables, settings: settings)
  }
}
