package import FanfareCore
import FoundationEssentials
package import PushServices

/// The directory in which a running simulator writes its addresses and the credentials that it accepts.
///
/// The files have the names and formats in which each vendor issues them. The simulator writes them; this type only
/// reads.
package struct SimulatorDirectory: Sendable {
  let path: String

  package init(path: String) { self.path = path }

  /// The file with the simulator's addresses, which it writes last.
  private var endpointsFile: String { file("endpoints.json") }
  /// The files with the APNs key and its ids.
  var apnsFiles: [String] { [file("apns.p8"), file("apns.json")] }
  /// The file with Google's service account, whose token endpoint is the simulator.
  var serviceAccountFile: String { file("service-account.json") }

  /// The configurations with which a hub pushes to the simulator.
  ///
  /// Throws `PushConfigurationError` and the errors of the file system and of the decoder.
  package func configurations(of hub: HubName) throws -> (
    apns: APNsConfiguration, fcm: FCMConfiguration, wns: WNSConfiguration
  ) {
    let endpoints = try Endpoints(contents(endpointsFile))
    let authority = try text(file("ca.pem"))
    let (key, ids) = (try text(file("apns.p8")), try decode(APNsIDs.self, file("apns.json")))
    var apns = APNsConfiguration(
      hub: hub, keyID: ids.keyID, teamID: ids.teamID, privateKey: key, topic: ids.bundleIDs.first ?? "")
    (apns.host, apns.port, apns.trustRoots) = (endpoints.host, endpoints.apnsPort, authority)
    var fcm = FCMConfiguration(hub: hub, serviceAccount: try serviceAccount())
    (fcm.host, fcm.port, fcm.trustRoots) = (endpoints.host, endpoints.fcmPort, authority)
    let app = try decode(WindowsApp.self, file("wns.json"))
    var wns = WNSConfiguration(hub: hub, flow: .store(packageSID: app.packageSID, secret: app.packageSecret))
    wns.tokenEndpoint = "https://\(endpoints.host):\(endpoints.httpsPort)/accesstoken.srf"
    wns.connectTo = (endpoints.host, endpoints.httpsPort)
    wns.trustRoots = authority
    return (apns, fcm, wns)
  }

  /// The APNs key that the simulator accepts now, and its id.
  func apnsKey() throws -> (privateKey: String, id: String) {
    (try text(file("apns.p8")), try decode(APNsIDs.self, file("apns.json")).keyID)
  }

  /// The service account that the simulator accepts now.
  func serviceAccount() throws -> ServiceAccountKey {
    try ServiceAccountKey(json: [UInt8](contents(serviceAccountFile)))
  }

  private func file(_ name: String) -> String { "\(path)/\(name)" }
  private func contents(_ file: String) throws -> Data { try Data(contentsOf: URL(filePath: file)) }
  private func text(_ file: String) throws -> String { String(decoding: try contents(file), as: UTF8.self) }
  private func decode<Value: Decodable>(_ type: Value.Type, _ file: String) throws -> Value {
    try JSONDecoder().decode(type, from: try contents(file))
  }

  /// The simulator's addresses. The host is an IPv4 address or a name.
  private struct Endpoints: Decodable {
    let host: String
    let apnsPort: Int
    let fcmPort: Int
    let httpsPort: Int

    init(_ json: Data) throws { self = try JSONDecoder().decode(Self.self, from: json) }
  }

  private struct APNsIDs: Decodable {
    let keyID: String
    let teamID: String
    let bundleIDs: [String]

    enum CodingKeys: String, CodingKey {
      case keyID = "key_id"
      case teamID = "team_id"
      case bundleIDs = "bundle_ids"
    }
  }

  private struct WindowsApp: Decodable {
    let packageSID: String
    let packageSecret: String
  }
}
