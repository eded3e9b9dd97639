import Crypto
import CryptoExtras
import FanfareCore
import Foundation
import Support
import Testing

@testable import PushServices

/// Fixtures of this target's tests.
enum Fixtures {
  static let now = UnixTime(milliseconds: 1_795_248_000_000)
  static let sendID = SendID(high: 0x0123_4567_89AB_7DEF, low: 0x8123_4567_89AB_CDEF)
  static let pushID = PushID(high: 0x1111_2222_3333_8444, low: 0x8555_6666_7777_8888)

  /// Texts that have broken renderers before.
  static let hostileTexts = [
    #"quotes " and ' and \ and / and \u0041"#, "<b>&amp;</b> ]]> <!-- -->", "line\nbreak\r\nand\ttab",
    "emoji 👩‍👩‍👧‍👦🏴‍☠️ and e\u{301}",
    "controls \u{0}\u{1}\u{8}\u{B}\u{C}\u{1F}\u{7F}\u{80}\u{9F}",
    "nonchars " + [0xFFFE, 0xFFFF, 0xFDD0, 0x1FFFE].compactMap(Unicode.Scalar.init).map { String($0) }.joined()
      + " end",
    "separators \u{2028}\u{2029}\u{FEFF}\u{202E}", "", " ", "%@ {} ${x} </text>", "\u{FFFD}\u{10FFFD}",
  ]

  static func send(
    _ content: Content, priority: Priority = .high, collapseKey: String? = nil
  ) -> SendRequest {
    SendRequest(
      id: sendID, acceptedAt: now, audience: .user("alice"), content: content, timeToLive: 3600, priority: priority,
      collapseKey: collapseKey)
  }

  static func send(_ message: Message, priority: Priority = .high, collapseKey: String? = nil) -> SendRequest {
    send(Content(message: message), priority: priority, collapseKey: collapseKey)
  }

  /// Parses with Foundation, which shares no code with the writer.
  static func object(_ json: [UInt8]) throws -> [String: Any] {
    try #require(try JSONSerialization.jsonObject(with: Data(json)) as? [String: Any])
  }
}

/// A member of parsed JSON, or a member of a member.
func member(_ object: Any?, _ path: String...) -> Any? {
  path.reduce(object) { ($0 as? [String: Any])?[$1] }
}

/// Credentials that are valid nowhere.
enum TestKeys {
  /// A P-256 key in the form of a `.p8` file.
  static let p256 = P256.Signing.PrivateKey()

  /// An RSA key in the form of a service account's file.
  static let rsa = Result { try _RSA.Signing.PrivateKey(keySize: .bits2048) }

  static func apns(port: Int, trustRoots: String) -> APNsConfiguration {
    var configuration = APNsConfiguration(
      keyID: "ABC123DEFG", teamID: "TEAM123456", privateKey: p256.pemRepresentation, topic: "com.example.app")
    configuration.host = "localhost"
    configuration.port = port
    configuration.trustRoots = trustRoots
    configuration.maximumConnections = 1
    configuration.requestTimeout = Patience.answer
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
