package import FanfareCore
import FrontEnd

/// One hub: its callers, and its credentials at the push services. All keys are under `hub.NAME.`.
///
/// - `simulator` (text): the directory of a `fanfare-dev simulator`, which replaces all three push services; the keys
///   of the platforms are not needed. A worker waits half a minute for a simulator that is starting.
/// - `authentication.method` (`htpasswd`, `demo` or `none`, default `htpasswd`): how passwords are checked. `demo`
///   accepts every user whose password is the name. It requires that the front end listens on a loopback address,
///   unless `authentication.allowRemote` is true. With `none` there are no passwords: callers have tokens, API keys or
///   certificates.
/// - `authentication.file` (text): the htpasswd file; bcrypt, yescrypt or SHA-512.
/// - `authentication.everyone` (list of scopes, default `device` and `send:user`): the scopes of every authenticated
///   user; see `Scope`.
/// - `authentication.operators` (list of users): users that have `read:all` and `operate` in addition.
/// - `authentication.grants` (list of texts): further scopes of a user, `user alice: send:tag send:broadcast`, or of
///   the members of a group, `group ops: operate`.
/// - `authentication.groupFile` (text): the groups of the users, in Apache's format (`ops: alice bob`); read again when
///   it changes.
/// - `authentication.token.…`: see `TokenSettings`.
/// - `authentication.certificate.userFrom` (`uri`, `dns`, `email`, `commonName` or `none`, default `none`): the part of
///   a client certificate that names the user; with `none`, certificates are not accepted as credentials. See
///   `CertificateAuthenticator.UserSource`.
/// - `hooks` (list of names): the receivers of the hub's outcomes; see `HookSettings`.
/// - `azure.…`: see `AzureHubSettings`.
/// - `quota.…`: see `QuotaPolicy.init(hub:from:)`.
/// - `apns.…`, `fcm.…`, `wns.…`: see `APNsSettings`, `FCMSettings`, `WNSSettings`.
package struct HubSettings: Sendable {
  /// The method that authenticates callers.
  enum AuthenticationMethod: String, CaseIterable, Sendable { case htpasswd, demo, noPasswords = "none" }

  package let name: HubName
  let simulator: String?
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
  let apns: APNsSettings?
  let fcm: FCMSettings?
  /// The most pushes to FCM of all workers in any 60 seconds.
  ///
  /// Nil for no limit, the default with a simulator.
  let fcmPushesPerMinute: Int?
  let wns: WNSSettings?
  /// The most connections of one process to APNs and to FCM, or to a simulator of them.
  let maximumConnections: (apns: Int, fcm: Int)

  init(_ name: HubName, from reader: SettingsReader) throws(SettingsError) {
    let prefix = "hub.\(name)"
    self.name = name
    simulator = try reader.optionalString("\(prefix).simulator")
    method = try reader.choice("\(prefix).authentication.method", default: .htpasswd)
    passwordFile = try reader.optionalString("\(prefix).authentication.file")
    allowRemote = try reader.bool("\(prefix).authentication.allowRemote", default: false)
    groupFile = try reader.optionalString("\(prefix).authentication.groupFile")
    policy = try ScopePolicy(under: "\(prefix).authentication", from: reader)
    // Sections of their own: a mistake in one of them hides none in another.
    tokens = reader.collect { () throws(SettingsError) in try TokenSettings(hub: name, from: reader) } ?? nil
    certificateUser = try reader.choiceOrNone("\(prefix).authentication.certificate.userFrom")
    hooks = try Self.hooks(of: name, from: reader)
    azure = try AzureHubSettings(hub: name, from: reader)
    quotas = try QuotaPolicy(hub: name, from: reader)
    apns = reader.collect { () throws(SettingsError) in try APNsSettings(hub: name, from: reader) } ?? nil
    fcm = reader.collect { () throws(SettingsError) in try FCMSettings(hub: name, from: reader) } ?? nil
    let simulatedQuota = simulator == nil ? 0 : try FCMSettings.quota(of: name, default: 0, from: reader)
    fcmPushesPerMinute = fcm?.maximumPerMinute ?? (simulatedQuota == 0 ? nil : simulatedQuota)
    wns = reader.collect { () throws(SettingsError) in try WNSSettings(hub: name, from: reader) } ?? nil
    maximumConnections = (
      try APNsSettings.connections(of: name, from: reader), try FCMSettings.connections(of: name, from: reader)
    )
  }
}
