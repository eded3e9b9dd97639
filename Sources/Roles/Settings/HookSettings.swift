import FanfareCore
import Hooks

/// One hook: a receiver of the outcomes of the hubs that name it in `hub.NAME.hooks`. All keys are under `hook.NAME.`.
///
/// The files are read by `fanfare hooks` alone, and that of the secrets again when it changes.
///
/// - `url` (text): the receiver's https URL.
/// - `secretFile` (text): a file with the secret of the signatures; see `WebhookSecrets`.
/// - `events` (`all`, `failures` or `settled`, default `all`): the outcomes that it receives.
/// - `allowPrivate` (default false): whether the receiver may have a private or a loopback address.
/// - `trustRootsFile` (text): certificates (PEM) to trust instead of the system's.
/// - `timeoutSeconds` (0.1…60, default 10): the time limit of one request.
/// - `maximumAgeHours` (1…720, default 72): the age beyond which an event that cannot be delivered is skipped.
struct HookSettings: Sendable {
  /// The rule of a hook's name, which is part of keys and of a consumer group.
  static let nameRule = "1 to 64 characters of a-z, 0-9 and -, not beginning with -"

  private let configuration: HookConfiguration
  private let key: String
  private let secretFile: SecretFile
  private let trustRootsFile: String?

  var name: String { configuration.name }
  var hubs: Set<HubName> { configuration.hubs }
  var files: [String] { [secretFile.path] }

  init(_ name: String, hubs: Set<HubName>, from reader: SettingsReader) throws(SettingsError) {
    key = "hook.\(name)"
    let url = try reader.requiredString("\(key).url", "the receiver's address")
    guard let url = HookURL(url) else { throw SettingsError("\(key).url", HookURL.rule) }
    var hook = HookConfiguration(name: name, url: url, hubs: hubs)
    let secret = try reader.secretFile(at: "\(key).secretFile")
    hook.events = try reader.choice("\(key).events", default: .all)
    hook.allowsPrivate = try reader.bool("\(key).allowPrivate", default: false)
    trustRootsFile = try reader.optionalString("\(key).trustRootsFile")
    hook.timeout = try reader.seconds("\(key).timeoutSeconds", default: 10, in: 0.1...60)
    let hours = try reader.int("\(key).maximumAgeHours", default: 72, in: 1...720)
    hook.maximumAge = .seconds(Int64(hours) * 3600)
    guard let secret else {
      throw SettingsError("\(key).secretFile", "is missing: it \(WebhookSecrets.rule)")
    }
    secretFile = secret
    configuration = hook
  }

  /// The hooks that the hubs name, in the order of their names.
  static func all(of hubs: [HubSettings], from reader: SettingsReader) -> [HookSettings] {
    var users: [String: Set<HubName>] = [:]
    for hub in hubs { for hook in hub.hooks { users[hook, default: []].insert(hub.name) } }
    return users.sorted { $0.key < $1.key }.compactMap { name, hubs in
      reader.collect { () throws(SettingsError) in try HookSettings(name, hubs: hubs, from: reader) }
    }
  }

  /// Reads the trust roots. Throws an error that names the key.
  func hook() throws(SettingsError) -> HookConfiguration {
    var hook = configuration
    if let trustRootsFile {
      hook.trustRoots = try SettingsReader.contents(of: trustRootsFile, key: "\(key).trustRootsFile")
    }
    return hook
  }

  /// Reads the secrets. Throws an error that names the key.
  func secrets() throws(SettingsError) -> WebhookSecrets {
    guard let secrets = WebhookSecrets(try secretFile.text()) else {
      throw SettingsError("\(key).secretFile", WebhookSecrets.rule)
    }
    return secrets
  }
}

extension HubSettings {
  /// The names of the hub's hooks.
  static func hooks(of hub: HubName, from reader: SettingsReader) throws(SettingsError) -> [String] {
    let key = "hub.\(hub).hooks"
    let names = try reader.strings(key)
    guard names.count <= 16, Set(names).count == names.count, names.allSatisfy({ HubName($0) != nil }) else {
      throw SettingsError(key, "must list at most 16 names once each: \(HookSettings.nameRule)")
    }
    return names
  }
}
