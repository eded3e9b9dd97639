import FanfareCore
import Hooks
import SettingsTable

/// One hook: a receiver of the outcomes of the hubs that name it in `hub.NAME.hooks`.
///
/// The files are read by `fanfare hooks` alone, and that of the secrets again when it changes.
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

  struct Keys: Sendable {
    @Setting(example: "https://hooks.example.com/fanfare", "the receiver's https URL") var url: String?
    @Setting(example: "/etc/fanfare/hook-audit", "whsec_ and base64; during a rotation a line for each of two secrets")
    var secretFile: SecretFile?
    @Setting("failures are outcomes that did not reach every device, settled are complete results")
    var events = HookConfiguration.Events.all
    @Setting("whether the receiver may have a private or loopback address") var allowPrivate = false
    @Setting(example: "roots.pem", "replaces the system's trust roots") var trustRootsFile: String?
  }

  static let keys = SettingsSection(
    "hook.NAME", Keys(),
    "Receivers of outcomes, to which `fanfare hooks` posts signed events. This one is used with hub.default.hooks: "
      + "[audit]",
    // A receiver that needs longer should answer first and work afterwards. Three days are a weekend and a day.
    retired: [
      "timeoutSeconds": "a request may take 10 seconds",
      "maximumAgeHours": "an event that cannot be delivered for three days is skipped",
    ])

  init(_ name: String, hubs: Set<HubName>, from reader: SettingsReader) throws(SettingsError) {
    key = "hook.\(name)"
    let keys = try reader.read(Self.keys, of: name)
    guard let url = keys.url else { throw SettingsError("\(key).url", "is missing: the receiver's address") }
    guard let url = HookURL(url) else { throw SettingsError("\(key).url", HookURL.rule) }
    var hook = HookConfiguration(name: name, url: url, hubs: hubs)
    (hook.events, hook.allowsPrivate) = (keys.events, keys.allowPrivate)
    trustRootsFile = keys.trustRootsFile
    guard let secret = keys.secretFile else {
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
