package import FanfareCore
import FrontEnd
import PushServices
import SettingsTable

/// One hub: its callers, and its credentials at the push services.
package struct HubSettings: Sendable {
  /// The method that authenticates callers.
  enum AuthenticationMethod: String, CaseIterable, Sendable { case htpasswd, demo, noPasswords = "none" }

  package let name: HubName
  package let simulator: String?
  let method: AuthenticationMethod
  let passwordFile: String?
  let allowRemote: Bool
  let policy: ScopePolicy
  let groupFile: String?
  let tokens: TokenSettings?
  let certificateUser: CertificateAuthenticator.UserSource?
  let hooks: [String]
  let azure: AzureHubSettings
  package let quotas: QuotaPolicy
  /// The push services, in the order of the platforms.
  let services: [any PushServiceSettings]

  struct Keys: Sendable {
    @Setting("names of receivers of the hub's outcomes; see hook") var hooks: [String] = []
    @Setting(
      example: "fanfare-simulator",
      "the directory of a running `fanfare-dev simulator`: it serves all platforms, whose keys "
        + "are not needed")
    var simulator: String?
  }

  static let hubKeys = SettingsSection("hub.NAME", Keys())

  struct AuthenticationKeys: Sendable {
    @Setting(
      "how passwords are checked; with demo the password is the user's name, on loopback addresses only; with none there "
        + "are tokens, keys and certificates only")
    var method = AuthenticationMethod.htpasswd
    @Setting(example: "/etc/fanfare/htpasswd", "bcrypt, yescrypt or SHA-512") var file: String?
    @Setting("whether demo also serves addresses other than loopback") var allowRemote = false
    @Setting(
      "the scopes of every user, of device, send:user, send:tag, send:broadcast, send:device, send:native, read:all "
        + "and operate")
    var everyone = Scope.allCases.filter(ScopePolicy.standard.contains).map(\.rawValue)
    @Setting("users who have read:all and operate in addition") var operators: [String] = []
    @Setting("further scopes: [\"user alice: send:tag send:broadcast\", \"group ops: operate\"]")
    var grants: [String] = []
    @Setting(
      example: "/etc/fanfare/groups",
      "the groups of the users, in Apache's format (\"ops: alice bob\"); read again "
        + "when it changes")
    var groupFile: String?
  }

  struct CertificateKeys: Sendable {
    @Setting(orNothing: "none", "the part of a client certificate that names the user; none: no certificates")
    var userFrom: CertificateAuthenticator.UserSource?
  }

  static let authenticationKeys = SettingsSection("hub.NAME.authentication", AuthenticationKeys())
  static let certificateKeys = SettingsSection("hub.NAME.authentication.certificate", CertificateKeys())

  init(_ name: HubName, from reader: SettingsReader) throws(SettingsError) {
    self.name = name
    let keys = try reader.read(Self.hubKeys, of: name.rawValue)
    let callers = try reader.read(Self.authenticationKeys, of: name.rawValue)
    (simulator, method, passwordFile) = (keys.simulator, callers.method, callers.file)
    (allowRemote, groupFile) = (callers.allowRemote, callers.groupFile)
    certificateUser = try reader.read(Self.certificateKeys, of: name.rawValue).userFrom
    policy = try ScopePolicy(callers, of: name)
    guard keys.hooks.count <= 16, Set(keys.hooks).count == keys.hooks.count,
      keys.hooks.allSatisfy({ HubName($0) != nil })
    else { throw SettingsError("hub.\(name).hooks", "must list at most 16 names once each: \(HookSettings.nameRule)") }
    hooks = keys.hooks
    // Sections of their own: a mistake in one of them hides none in another.
    tokens = reader.collect { () throws(SettingsError) in try TokenSettings(hub: name, from: reader) } ?? nil
    azure = try AzureHubSettings.read(name, from: reader)
    quotas = try QuotaPolicy(hub: name, from: reader)
    services = PushServiceList.all.compactMap { service in
      reader.collect { () throws(SettingsError) in try service.init(hub: name, from: reader) }
    }
  }

  /// The most pushes of all workers in any 60 seconds, by platform.
  var pushesPerMinute: [Platform: Int] {
    services.reduce(into: [:]) { $0[type(of: $1).platform] = $1.pushesPerMinute }
  }
}
