import Crypto
import CryptoExtras
import FanfareCore
import Foundation

@testable import PushServices

/// Credentials that are good nowhere.
enum TestKeys {
  /// A P-256 key, as `.p8` files hold it.
  static let p256 = P256.Signing.PrivateKey()

  /// An RSA key, as service accounts' files hold it.
  static let rsa = Result { try _RSA.Signing.PrivateKey(keySize: .bits2048) }

  static func apns(port: Int, trustRoots: String) -> APNsConfiguration {
    var configuration = APNsConfiguration(
      keyID: "ABC123DEFG", teamID: "TEAM123456", privateKey: p256.pemRepresentation, topic: "com.example.app")
    configuration.host = "localhost"
    configuration.port = port
    configuration.trustRoots = trustRoots
    configuration.maximumConnections = 1
    configuration.requestTimeout = .seconds(10)
    return configuration
  }

  static func serviceAccountFile(_ changes: [String: Any?] = [:]) throws -> [UInt8] {
    var file: [String: Any] = [
      "type": "service_account", "project_id": "demo-project", "private_key_id": "key-1",
      "private_key": try rsa.get().pkcs8PEMRepresentation,
      "client_email": "push@demo-project.example", "token_uri": "https://oauth2.example/token", "client_id": "1",
    ]
    for (key, value) in changes { file[key] = value }
    return Array(try JSONSerialization.data(withJSONObject: file))
  }
}
