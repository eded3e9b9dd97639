package import FanfareCore
import FoundationEssentials
package import PushServices

/// The directory that a running simulator of the push services announces itself in: where it listens, and the
/// credentials that it accepts.
///
/// The files are named and shaped as each vendor hands them out; the simulator writes them, this only reads.
package struct SimulatorDirectory: Sendable {
  let path: String

  package init(path: String) { self.path = path }

  /// Where the simulator listens; written last.
  var endpointsFile: String { file("endpoints.json") }
  /// The APNs key, and the ids that belong to it.
  var apnsFiles: [String] { [file("apns.p8"), file("apns.json")] }
  /// Google's service account, with the simulator as its token endpoint.
  var serviceAccountFile: String { file("service-account.json") }

  /// The configurations that make a hub push to the simulator. Throws the errors of the file system, of the decoder and
  /// `PushConfigurationError`.
  package func configurations(of hub: HubName) throws -> (
    apns: APNsConfiguration, fcm: FCMConfiguration, wns: WNSConfiguration
  ) {
    let endpoints = try Endpoints(contents(endpointsFile))
    let authority = try text(file("ca.pem"))
    let (key, ids) = (try text(file("apns.p8")), try decode(APNsIDs.self, file("apns.json")))
    var apns = APNsConfiguration(
      hub: hub, keyID: ids.keyID, teamID: ids.teamID, privateKey: key, topic: ids.bundleIDs.first ?? "")
    (apns.host, apns.port, apns.trustRoots) = (endpoints.host, endpoints.apnsPort, authority)
    let account = try ServiceAccountKey(json: [UInt8](contents(serviceAccountFile)))
    var fcm = FCMConfiguration(hub: hub, serviceAccount: account)
    (fcm.host, fcm.port, fcm.trustRoots) = (endpoints.host, endpoints.fcmPort, authority)
    let app = try decode(WindowsApp.self, file("wns.json"))
    var wns = WNSConfiguration(hub: hub, flow: .store(packageSID: app.packageSID, secret: app.packageSecret))
    wns.tokenEndpoint = "https://\(endpoints.host):\(endpoints.httpsPort)/accesstoken.srf"
    wns.connectTo = (endpoints.host, endpoints.httpsPort)
    wns.trustRoots = authority
    return (apns, fcm, wns)
  }

  /// The APNs key that is accepted now, and its id.
  func apnsKey() throws -> (privateKey: String, id: String) {
    (try text(file("apns.p8")), try decode(APNsIDs.self, file("apns.json")).keyID)
  }

  private func file(_ name: String) -> String { "\(path)/\(name)" }
  private func contents(_ file: String) throws -> Data { try Data(contentsOf: URL(filePath: file)) }
  private func text(_ file: String) throws -> String { String(decoding: try contents(file), as: UTF8.self) }
  private func decode<Value: Decodable>(_ type: Value.Type, _ file: String) throws -> Value {
    try JSONDecoder().decode(type, from: try contents(file))
  }

  /// Where the simulator listens. Its host is an IPv4 address or a name.
  struct Endpoints: Decodable {
    let host: String
    let apnsPort: Int
    let fcmPort: Int
    let httpsPort: Int
    let adminPort: Int

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
