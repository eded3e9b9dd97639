import Crypto
import FanfareCore
package import FoundationEssentials

extension SimulatorCredentials {
  /// An app that pushes through APNs with a provider token.
  package struct APNsApp: SimulatedApp, Codable {
    /// The ES256 key as in the `.p8` file: PKCS #8, PEM. Secret.
    package var privateKeyPEM = P256.Signing.PrivateKey().pemRepresentation
    /// The key's id, ten characters.
    package var keyID = randomID()
    /// The team's id, ten characters.
    package var teamID = randomID()
    /// The bundle ids that may be pushed to.
    package var bundleIDs = ["com.example.fanfare"]

    /// The members of the file of the ids.
    enum CodingKeys: String, CodingKey {
      case keyID = "key_id"
      case teamID = "team_id"
      case bundleIDs = "bundle_ids"
    }

    private static func randomID() -> String { randomText(10, of: "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789") }
  }

  package var apns: APNsApp {
    get { self[APNsApp.self] }
    set { self[APNsApp.self] = newValue }
  }
}

extension SimulatorCredentials.APNsApp {
  package static func generate() -> Self { Self() }

  package init(files read: (String) throws -> Data) throws {
    self = try JSONDecoder().decode(Self.self, from: read(SimulatorCredentials.FileName.apns))
    privateKeyPEM = String(decoding: try read(SimulatorCredentials.FileName.apnsKey), as: UTF8.self)
  }

  package func files(_ endpoints: SimulatorEndpoints?) throws -> [String: Data] {
    [
      SimulatorCredentials.FileName.apnsKey: Data(privateKeyPEM.utf8),
      SimulatorCredentials.FileName.apns: try SimulatorCredentials.encode(self),
      SimulatorCredentials.FileName.apnsKeyID: Data(keyID.utf8),
    ]
  }

  package func keys(_ endpoints: SimulatorEndpoints) -> [String: String] {
    [
      "apns.keyFile": SimulatorCredentials.FileName.apnsKey,
      "apns.keyIDFile": SimulatorCredentials.FileName.apnsKeyID,
      "apns.teamID": teamID, "apns.topic": bundleIDs.first ?? "",
      "apns.host": endpoints.host, "apns.port": "\(endpoints.port(of: .apns))",
      "apns.trustRootsFile": SimulatorCredentials.FileName.authority,
    ]
  }
}

extension SimulatorCredentials.FileName {
  /// The APNs key.
  package static let apnsKey = "apns.p8"
  /// The ids that belong to the APNs key, JSON.
  static let apns = "apns.json"
  /// The key's id by itself.
  static let apnsKeyID = "apns-key-id"
}
