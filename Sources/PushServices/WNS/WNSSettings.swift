package import FanfareCore
package import SettingsTable

/// A hub's credentials and connections for WNS.
package struct WNSSettings: PushServiceSettings {
  package static let platform = Platform.wns
  package static var declaration: SettingsDeclaration { keys.declaration }

  /// The app and the connections; nil without a secret.
  package let configuration: WNSConfiguration?
  /// The file of the app's secret.
  package let file: SecretFile?
  package let maximumConnections: Int?

  struct Keys: Sendable {
    @Setting(example: "/etc/fanfare/wns-secret", "read again when it changes") var secretFile: SecretFile?
    @Setting(example: "ms-app://s-1-15-2-…", "for an app of the Microsoft Store") var packageSID: String?
    @Setting(example: "contoso.com", "or for an app registered in Entra ID") var tenant: String?
    @Setting(example: "00000000-0000-0000-0000-000000000000", "its id") var applicationID: String?
    @Setting(example: "https://login.live.com/accesstoken.srf", "replaces Microsoft's endpoint")
    var tokenEndpoint: String?
    @Setting(example: "127.0.0.1", "a test double that replaces the hosts of all channel URIs") var connectHost: String?
    @Setting(in: 1...65535, "of that host") var connectPort = 443
    @Setting(contents: "roots.pem", "replaces the system's trust roots") var trustRootsFile: String?
    @Setting(in: 1...1000, "of one worker") var maximumConnections = StreamLimits.wns.connections
  }

  static let keys = SettingsSection("hub.NAME.wns", Keys())

  package init(hub: HubName, from reader: SettingsReader) throws(SettingsError) {
    let prefix = "hub.\(hub).wns"
    let keys = try reader.read(Self.keys, of: hub.rawValue)
    let (packageSID, tenant, applicationID) = (keys.packageSID, keys.tenant, keys.applicationID)
    (file, maximumConnections) = (keys.secretFile, keys.maximumConnections)
    guard let file else {
      guard packageSID == nil, tenant == nil, applicationID == nil else {
        throw SettingsError("\(prefix).secretFile", "is missing: the app's secret comes from a file")
      }
      configuration = nil
      return
    }
    let secret = try file.text()
    let flow: WNSConfiguration.Flow
    switch (packageSID, tenant, applicationID) {
    case (let packageSID?, nil, nil): flow = .store(packageSID: packageSID, secret: secret)
    case (nil, let tenant?, let applicationID?):
      flow = .entra(tenant: tenant, applicationID: applicationID, secret: secret)
    default:
      throw SettingsError("\(prefix).packageSID", "must be given, or else both tenant and applicationID")
    }
    var configuration = WNSConfiguration(hub: hub, flow: flow)
    configuration.tokenEndpoint = keys.tokenEndpoint
    configuration.connectTo = keys.connectHost.map { ($0, keys.connectPort) }
    configuration.trustRoots = keys.trustRootsFile
    configuration.maximumConnections = keys.maximumConnections
    self.configuration = configuration
  }

  package var files: [String] { file.map { [$0.path] } ?? [] }

  package func sender(_ resources: SenderResources) throws -> RenewableSender {
    guard let configuration, let file else { throw PushConfigurationError(field: "secret", problem: "is missing") }
    let sender = try WNSSender(configuration, resources)
    return RenewableSender(sender, files: files) { try sender.use(secret: file.text()) }
  }
}

extension WNS: ServedPlatform {
  package typealias Settings = WNSSettings
}
