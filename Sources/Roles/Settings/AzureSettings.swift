package import AzureHub
package import FanfareCore
import FrontEnd
package import Logging
import PushServices
package import SettingsTable

/// The protocol of Azure Notification Hubs, which front ends serve beside their own.
package struct AzureSettings: Sendable {
  package let isEnabled: Bool
  fileprivate let rulesFile: SecretFile?
  package let prefix: [String]
  package let hosts: [String]
  private let jobsFolder: String?

  struct Keys: Sendable {
    @Setting("whether front ends serve it") var enabled = false
    @Setting(
      example: "/etc/fanfare/azure-rules",
      "the shared access rules for all hubs: lines of \"NAME RIGHTS KEY [KEY]\"; "
        + "read again when it changes")
    var rulesFile: SecretFile?
    @Setting(example: "azure", "the path in front of the hub's name; by default there is none") var prefix: String?
    @Setting("names of hosts whose requests are all in this protocol") var hosts: [String] = []
    @Setting(
      example: "/var/lib/fanfare/jobs",
      "files of the jobs over registrations, of one front end; by default there are "
        + "no jobs")
    var jobsFolder: String?
  }

  static let keys = SettingsSection(
    "azure", Keys(),
    "The protocol of Azure Notification Hubs, for back ends and apps that were written for it.")

  init(from reader: SettingsReader) throws(SettingsError) {
    let keys = try reader.read(Self.keys)
    (isEnabled, rulesFile, jobsFolder) = (keys.enabled, keys.rulesFile, keys.jobsFolder)
    prefix = keys.prefix?.split(separator: "/").map(String.init) ?? []
    guard prefix.allSatisfy({ Tag.isValid($0) }) else {
      throw SettingsError("azure.prefix", "must be a path of letters, digits, '-', '_' and '.', such as azure")
    }
    hosts = keys.hosts.map { $0.lowercased() }
    guard hosts.allSatisfy({ !$0.isEmpty && !$0.contains("/") && !$0.contains(":") }) else {
      throw SettingsError("azure.hosts", "must be a list of host names without a port, such as ns.example.com")
    }
  }

  /// The routes' configuration for the hubs.
  package func configuration(of hubs: [HubSettings], _ runtime: Runtime) -> AzureConfiguration {
    var configuration = AzureConfiguration()
    (configuration.prefix, configuration.hosts) = (prefix, hosts)
    for hub in hubs {
      for name in hub.azure.names { configuration.aliases[name.lowercased()] = hub.name }
      configuration.credentials[hub.name] = CredentialFiles(of: hub, runtime)
      if hub.azure.updatesCredentials { configuration.changeable.insert(hub.name) }
    }
    return configuration
  }

  /// Runs the jobs of the hubs; nil if there are none.
  package func jobs(
    of hubs: [HubSettings], registry: any DeviceRegistry & RegistrationDirectory & RegistrationInquiry,
    clock: any WallClock, logger: Logger
  ) -> JobRunner? {
    jobsFolder.map { JobRunner(folder: $0, hubs: hubs.map(\.name), registry: registry, clock: clock, logger: logger) }
  }
}

/// A hub in the protocol of Azure Notification Hubs.
package struct AzureHubSettings: Sendable {
  @Setting(
    example: "/etc/fanfare/azure-rules-default", "the hub's own shared access rules; read again when it changes")
  fileprivate var rulesFile: SecretFile?
  @Setting("further names of the hub for clients of Azure, in any letter case") fileprivate var names: [String] = []
  @Setting("whether a rule with Manage may replace the files of apns, fcm and wns") fileprivate var updatesCredentials =
    false

  static let keys = SettingsSection("hub.NAME.azure", AzureHubSettings())

  /// Reads the hub's keys.
  static func read(_ hub: HubName, from reader: SettingsReader) throws(SettingsError) -> Self {
    let azure = try reader.read(keys, of: hub.rawValue)
    guard azure.names.allSatisfy({ (1...260).contains($0.utf8.count) && Tag.isValid($0) }) else {
      throw SettingsError("hub.\(hub).azure.names", "must be a list of names of letters, digits, '-', '_' and '.'")
    }
    return azure
  }

  /// Notes names that another hub has, too, and credentials that may be replaced and are another hub's, too.
  static func check(_ hubs: [HubSettings], from reader: SettingsReader) {
    var owners = Dictionary(hubs.map { ($0.name.rawValue, $0.name) }) { first, _ in first }
    for hub in hubs {
      for name in hub.azure.names {
        guard let owner = owners.updateValue(hub.name, forKey: name.lowercased()), owner != hub.name else { continue }
        reader.note(
          SettingsMistake(key: "hub.\(hub.name).azure.names", expectation: "must not have a name of the hub \(owner)"))
      }
      guard hub.azure.updatesCredentials else { continue }
      let files = Set(hub.credentialFiles)
      for other in hubs where other.name != hub.name && !files.isDisjoint(with: other.credentialFiles) {
        reader.note(
          SettingsMistake(
            key: "hub.\(hub.name).azure.updatesCredentials",
            expectation: "must not be true: the hub \(other.name) has credentials in the same file"))
      }
    }
  }
}

extension HubSettings {
  fileprivate var credentialFiles: [String] { services.flatMap(\.files) }

  /// Authenticates callers by shared access signatures; nil if the protocol is off.
  ///
  /// Throws an error that names the key of an unusable file, or says that the hub has no rules.
  package func sharedAccess(
    _ settings: AzureSettings, clock: any WallClock, logger: Logger
  ) throws(SettingsError) -> SharedAccessAuthenticator? {
    guard settings.isEnabled else { return nil }
    guard azure.rulesFile != nil || settings.rulesFile != nil else {
      throw SettingsError("hub.\(name).azure.rulesFile", "is missing: without rules no client of Azure can log in")
    }
    return SharedAccessAuthenticator(
      hub: name, own: try azure.rulesFile?.rules(logger: logger),
      namespace: try settings.rulesFile?.rules(logger: logger), hosts: settings.hosts, clock: clock)
  }

  /// The hub's shared access rules, those for all hubs last.
  package func sharedAccessRules(_ settings: AzureSettings) throws(SettingsError) -> [SharedAccessRule] {
    try (azure.rulesFile?.parsed().rules ?? []) + (settings.rulesFile?.parsed().rules ?? [])
  }
}

extension SecretFile {
  fileprivate func parsed() throws(SettingsError) -> SharedAccessRules {
    let text = try text()
    do throws(FrontEndError) { return try SharedAccessRules(parsing: text) } catch {
      throw SettingsError(key, "names a file that cannot be used: \(error)")
    }
  }

  fileprivate func rules(logger: Logger) throws(SettingsError) -> SharedAccessFile {
    // The first reading here, because of its errors.
    _ = try parsed()
    do throws(FrontEndError) {
      return try SharedAccessFile(path: path, logger: logger) { _ throws(FrontEndError) in
        do throws(SettingsError) { return try text() } catch {
          throw FrontEndError(.configuration, "\(error)")
        }
      }
    } catch {
      throw SettingsError(key, "names a file that cannot be used: \(error)")
    }
  }
}
