import FanfareCore
import FrontEnd
import PushServices
package import SettingsTable

/// The configuration of the product; every role reads and checks all of it.
///
/// Values come from a YAML file, overridden by environment variables: `kafka.bootstrapServers` is
/// `FANFARE_KAFKA_BOOTSTRAP_SERVERS`.
package struct Settings: Sendable {
  package var kafka: KafkaSettings
  package let registry: RegistrySettings
  package let ledger: LedgerSettings
  package let api: APISettings
  package let authentication: AuthenticationSettings
  let console: ConsoleSettings
  package let azure: AzureSettings
  let worker: WorkerSettings
  /// The operations server of each role.
  package let operations: OperationsSettings
  /// The hubs, in the order of the file.
  package let hubs: [HubSettings]
  /// The receivers of outcomes, by name.
  let hooks: [HookSettings]
  let log: LogSettings
  /// Nil: sends are not traced.
  let tracing: TracingSettings?
  /// The variables with the program's prefix that match no key, sorted, each with the nearest known one.
  package internal(set) var unknownVariables: [String] = []

  /// The topics to which a front end produces.
  var intakeTopics: [String] { Set(hubs.map { kafka.topics.intake(of: $0.name) }).sorted() }

  /// The consumer group that all workers share.
  package var workerGroup: String { worker.group ?? "\(kafka.topics.prefix).workers" }

  /// Throws an error that names the keys of all unusable values.
  init(from reader: SettingsReader) throws(SettingsError) {
    let names = reader.collect { () throws(SettingsError) in try Self.hubNames(from: reader) } ?? [.default]
    let kafka = reader.collect { () throws(SettingsError) in try KafkaSettings(hubs: names, from: reader) }
    let registry = reader.collect { () throws(SettingsError) in try RegistrySettings(from: reader) }
    let ledger = reader.collect { () throws(SettingsError) in try LedgerSettings(from: reader) }
    let authentication = reader.collect { () throws(SettingsError) in try AuthenticationSettings(from: reader) }
    let api = reader.collect { () throws(SettingsError) in
      try APISettings(
        from: reader, topics: kafka?.topics ?? Topics(), logins: authentication?.logins ?? LoginLimits())
    }
    let worker = reader.collect { () throws(SettingsError) in try WorkerSettings(from: reader) }
    let console = reader.collect { () throws(SettingsError) in try ConsoleSettings(from: reader) }
    let azure = reader.collect { () throws(SettingsError) in try AzureSettings(from: reader) }
    let operations = reader.collect { () throws(SettingsError) in try reader.read(OperationsSettings.keys) }
    let log = reader.collect { () throws(SettingsError) in try LogSettings(from: reader) }
    let tracing = reader.collect { () throws(SettingsError) in try TracingSettings(from: reader) }
    hubs = names.compactMap { name in
      reader.collect { () throws(SettingsError) in try HubSettings(name, from: reader) }
    }
    hooks = HookSettings.all(of: hubs, from: reader)
    AzureHubSettings.check(hubs, from: reader)
    if let error = SettingsError(reader.mistakes) { throw error }
    guard let kafka, let registry, let ledger, let authentication, let api, let worker, let operations,
      let console, let azure, let log, let tracing
    else { preconditionFailure("a section of the settings failed without a mistake") }
    (self.kafka, self.registry, self.ledger, self.authentication) = (kafka, registry, ledger, authentication)
    (self.api, self.worker, self.operations, self.console) = (api, worker, operations, console)
    (self.azure, self.log, self.tracing) = (azure, log, tracing)
  }

  private struct Keys: Sendable {
    @Setting("the names of the hubs") var hubs = [HubName.default.rawValue]
  }

  private static let keys = SettingsSection("", Keys())

  private static func hubNames(from reader: SettingsReader) throws(SettingsError) -> [HubName] {
    var hubs: [HubName] = []
    for name in try reader.read(keys).hubs {
      guard let hub = HubName(name), !hubs.contains(hub) else {
        throw SettingsError("hubs", "must list names once each: \(HubName.rule)")
      }
      hubs.append(hub)
    }
    guard !hubs.isEmpty else { throw SettingsError("hubs", "must name at least one hub") }
    return hubs
  }
}

extension Settings {
  /// The declarations of all keys, in the order of `deploy/fanfare.yaml`.
  ///
  /// A section that is missing here is read all the same, and a test finds it.
  package static let declarations =
    [
      LogSettings.keys.declaration, ConsoleSettings.keys.declaration, TracingSettings.keys.declaration,
      SecretFile.declaration,
      KafkaSettings.keys.declaration, KafkaSecuritySettings.keys.declaration, OAuthSettings.keys.declaration,
      RegistrySettings.keys.declaration, RegistrySettings.databaseKeys.declaration,
      LedgerSettings.keys.declaration, LedgerSettings.databaseKeys.declaration,
      APISettings.keys.declaration, TLSSettings.keys.declaration, AzureSettings.keys.declaration,
      AuthenticationSettings.keys.declaration, WorkerSettings.keys.declaration, OperationsSettings.keys.declaration,
      keys.declaration, HubSettings.hubKeys.declaration, HubSettings.authenticationKeys.declaration,
      TokenSettings.keys.declaration, HubSettings.certificateKeys.declaration, AzureHubSettings.keys.declaration,
      QuotaKeys.keys.declaration,
    ] + PushServiceList.all.map { $0.declaration } + [HookSettings.keys.declaration]
}
