import FanfareCore
import PushServices

/// A hub's credentials and connections for WNS.
///
/// It exists if `wns.secretFile` is set. All keys are under `hub.NAME.`.
///
/// - `wns.secretFile` (text): a file with the app's secret.
/// - `wns.packageSID` (text): the id of an app of the Store. An app registered in Entra ID has `wns.tenant` and
///   `wns.applicationID` (text) instead.
/// - `wns.tokenEndpoint` (text): the URL for access tokens, instead of Microsoft's.
/// - `wns.connectHost` (text), `wns.connectPort` (1…65535, default 443): a test server that replaces the hosts of all
///   channel URIs.
/// - `wns.trustRootsFile` (text): certificates (PEM) to trust instead of the system's.
/// - `wns.maximumConnections` (1…1000, default 64)
struct WNSSettings: Sendable {
  let configuration: WNSConfiguration
  /// The file of the app's secret.
  let file: SecretFile

  init?(hub: HubName, from reader: SettingsReader) throws(SettingsError) {
    let prefix = "hub.\(hub).wns"
    let file = try reader.secretFile(at: "\(prefix).secretFile")
    let packageSID = try reader.optionalString("\(prefix).packageSID")
    let tenant = try reader.optionalString("\(prefix).tenant")
    let applicationID = try reader.optionalString("\(prefix).applicationID")
    let tokenEndpoint = try reader.optionalString("\(prefix).tokenEndpoint")
    let connectHost = try reader.optionalString("\(prefix).connectHost")
    let connectPort = try reader.int("\(prefix).connectPort", default: 443, in: 1...65535)
    let trustRoots = try reader.contents(ofFileAt: "\(prefix).trustRootsFile")
    let maximumConnections = try reader.int("\(prefix).maximumConnections", default: 64, in: 1...1000)
    guard let file else {
      guard packageSID == nil, tenant == nil, applicationID == nil else {
        throw SettingsError("\(prefix).secretFile", "is missing: the app's secret comes from a file")
      }
      return nil
    }
    self.file = file
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
    configuration.tokenEndpoint = tokenEndpoint
    configuration.connectTo = connectHost.map { ($0, connectPort) }
    configuration.trustRoots = trustRoots
    configuration.maximumConnections = maximumConnections
    self.configuration = configuration
  }
}
