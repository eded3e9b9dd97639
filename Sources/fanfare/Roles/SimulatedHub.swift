import FanfareCore
import PushServices
import PushSimulator

/// The configurations that make a hub push to a simulator.
struct SimulatedHub: Sendable {
  let apns: APNsConfiguration
  let fcm: FCMConfiguration
  let wns: WNSConfiguration

  /// Takes the credentials and the key file (`serviceAccount`) with the simulator's token endpoint in it. Throws
  /// `PushConfigurationError`.
  init(name: HubName, credentials: SimulatorCredentials, endpoints: SimulatorEndpoints, serviceAccount: [UInt8]) throws
  {
    var apns = APNsConfiguration(
      hub: name, keyID: credentials.apns.keyID, teamID: credentials.apns.teamID,
      privateKey: credentials.apns.privateKeyPEM,
      topic: credentials.apns.bundleIDs.first ?? "")
    (apns.host, apns.port, apns.trustRoots) = (endpoints.host, endpoints.apnsPort, credentials.authorityPEM)
    self.apns = apns
    var fcm = FCMConfiguration(hub: name, serviceAccount: try ServiceAccountKey(json: serviceAccount))
    (fcm.host, fcm.port, fcm.trustRoots) = (endpoints.host, endpoints.fcmPort, credentials.authorityPEM)
    self.fcm = fcm
    var wns = WNSConfiguration(
      hub: name, flow: .store(packageSID: credentials.windows.packageSID, secret: credentials.windows.packageSecret))
    wns.tokenEndpoint = endpoints.liveTokenURL
    wns.connectTo = (endpoints.host, endpoints.httpsPort)
    wns.trustRoots = credentials.authorityPEM
    self.wns = wns
  }
}
