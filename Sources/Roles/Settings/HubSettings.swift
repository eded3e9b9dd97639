package import FanfareCore
package import FrontEnd

/// One hub: who its callers are, and its credentials at the push services. All keys are under `hub.NAME.`.
///
/// - `simulator` (text): a directory of `fanfare-dev simulator`: all three platforms go there, and the keys below are not
///   needed. A worker waits half a minute for a simulator that is starting.
/// - `authentication.method` (`htpasswd` or `demo`, default `htpasswd`): `demo` takes every user whose password equals
///   the name, and refuses to serve anything but a loopback address unless `authentication.allowRemote` is true.
/// - `authentication.file` (text): the htpasswd file; bcrypt, yescrypt or SHA-512.
/// - `authentication.operators` (list of users): may look up everybody's sends.
/// - `authentication.everyone` (list of `device` and `sender`, default both): what every authenticated user may do.
/// - `quota.sendsPerSecond` (0…1000000, default 0: none): what each sender may post at each front end; a line of a
///   batch counts as a send.
/// - `quota.burst` (0…1000000, default 0: as many as in a second): what a sender may post at once.
/// - `apns.…`, `fcm.…`, `wns.…`: see `APNsSettings`, `FCMSettings`, `WNSSettings`.
package struct HubSettings: Sendable {
  /// How callers are recognised.
  enum AuthenticationMethod: String, CaseIterable, Sendable { case htpasswd, demo }

  package let name: HubName
  let simulator: String?
  let method: AuthenticationMethod
  let passwordFile: String?
  let allowRemote: Bool
  let roles: RolePolicy
  package let quota: SendQuota?
  let apns: APNsSettings?
  let fcm: FCMSettings?
  /// The most pushes to FCM of all workers in any 60 seconds; nil: as many as they can, to a simulator that was given
  /// no quota.
  let fcmPushesPerMinute: Int?
  let wns: WNSSettings?
  /// The most connections of a process to APNs, and to FCM; to a simulator's, too.
  let maximumConnections: (apns: Int, fcm: Int)

  init(_ name: HubName, from reader: SettingsReader) throws(SettingsError) {
    let prefix = "hub.\(name)"
    self.name = name
    simulator = try reader.optionalString("\(prefix).simulator")
    method = try reader.choice("\(prefix).authentication.method", default: .htpasswd)
    passwordFile = try reader.optionalString("\(prefix).authentication.file")
    allowRemote = try reader.bool("\(prefix).authentication.allowRemote", default: false)
    let operators = try reader.strings("\(prefix).authentication.operators")
    let everyone = try reader.strings("\(prefix).authentication.everyone", default: ["device", "sender"])
    var roles: Set<Role> = []
    for word in everyone {
      guard let role = Role(rawValue: word), role != .operator else {
        throw SettingsError("\(prefix).authentication.everyone", "must be a list of device and sender")
      }
      roles.insert(role)
    }
    self.roles = RolePolicy(everyone: roles, operators: Set(operators))
    let rate = try reader.int("\(prefix).quota.sendsPerSecond", default: 0, in: 0...1_000_000)
    let burst = try reader.int("\(prefix).quota.burst", default: 0, in: 0...1_000_000)
    quota = rate == 0 ? nil : SendQuota(perSecond: rate, burst: burst == 0 ? rate : burst)
    apns = try APNsSettings(hub: name, from: reader)
    fcm = try FCMSettings(hub: name, from: reader)
    let simulatedQuota = simulator == nil ? 0 : try FCMSettings.quota(of: name, default: 0, from: reader)
    fcmPushesPerMinute = fcm?.maximumPerMinute ?? (simulatedQuota == 0 ? nil : simulatedQuota)
    wns = try WNSSettings(hub: name, from: reader)
    maximumConnections = (
      try APNsSettings.connections(of: name, from: reader), try FCMSettings.connections(of: name, from: reader)
    )
  }
}
