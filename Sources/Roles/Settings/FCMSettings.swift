import FanfareCore
import PushServices

/// A hub's Firebase project.
///
/// It exists if `fcm.serviceAccountFile` is set. All keys are under `hub.NAME.`.
///
/// - `fcm.serviceAccountFile` (text): the service account's JSON key file.
/// - `fcm.host` (text, default `fcm.googleapis.com`), `fcm.port` (1…65535, default 443)
/// - `fcm.tokenEndpoint` (text): the URL for access tokens, instead of the key file's `token_uri`.
/// - `fcm.trustRootsFile` (text): certificates (PEM) to trust instead of the system's.
/// - `fcm.maximumConnections` (1…1000, default 10): also applies to a simulator.
/// - `fcm.maximumPerMinute` (1…100000000, default 600000): the quota, the most pushes of all workers together in any 60
///   seconds. If several hubs use one project, divide its quota among them. A simulator has no quota unless this key is
///   set.
struct FCMSettings: Sendable {
  let configuration: FCMConfiguration
  /// The service account's key file.
  let file: SecretFile
  /// The most pushes of all workers together in any 60 seconds.
  let maximumPerMinute: Int

  /// Google's default quota for a project.
  static let defaultQuota = 600_000

  init?(hub: HubName, from reader: SettingsReader) throws(SettingsError) {
    let prefix = "hub.\(hub).fcm"
    let file = try reader.secretFile(at: "\(prefix).serviceAccountFile")
    let host = try reader.optionalString("\(prefix).host")
    let port = try reader.int("\(prefix).port", default: 443, in: 1...65535)
    let tokenEndpoint = try reader.optionalString("\(prefix).tokenEndpoint")
    let trustRoots = try reader.contents(ofFileAt: "\(prefix).trustRootsFile")
    let maximumConnections = try Self.connections(of: hub, from: reader)
    maximumPerMinute = try Self.quota(of: hub, default: Self.defaultQuota, from: reader)
    guard let file else { return nil }
    self.file = file
    let account = try file.text()
    do {
      var configuration = FCMConfiguration(hub: hub, serviceAccount: try ServiceAccountKey(json: Array(account.utf8)))
      configuration.host = host ?? configuration.host
      configuration.port = port
      configuration.tokenEndpoint = tokenEndpoint
      configuration.trustRoots = trustRoots
      configuration.maximumConnections = maximumConnections
      self.configuration = configuration
    } catch {
      throw SettingsError("\(prefix).serviceAccountFile", "cannot be used: \(error)")
    }
  }

  /// The hub's `fcm.maximumConnections`.
  static func connections(of hub: HubName, from reader: SettingsReader) throws(SettingsError) -> Int {
    try reader.int("hub.\(hub).fcm.maximumConnections", default: 10, in: 1...1000)
  }

  /// The hub's `fcm.maximumPerMinute`, or the default if the key is absent.
  static func quota(of hub: HubName, default fallback: Int, from reader: SettingsReader) throws(SettingsError) -> Int {
    try reader.int("hub.\(hub).fcm.maximumPerMinute", default: fallback, in: 1...100_000_000)
  }

  /// Reads the service account's key file again. Throws when the file is unusable.
  func account() throws -> ServiceAccountKey { try ServiceAccountKey(json: Array(try file.text().utf8)) }
}
