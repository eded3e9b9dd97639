import Crypto
import CryptoExtras
import FanfareCore
import Foundation

@testable import FrontEnd

/// An issuer of tokens with keys of the test's own.
struct TestIssuer: Sendable {
  /// A key pair with its id.
  enum Key: Sendable {
    case rsa(String?, _RSA.Signing.PrivateKey)
    case p256(String?, P256.Signing.PrivateKey)
    case ed25519(String?, Curve25519.Signing.PrivateKey)

    var id: String? {
      switch self {
      case .rsa(let id, _), .p256(let id, _), .ed25519(let id, _): id
      }
    }
  }

  /// RSA keys take long to make, so that tests share two of them.
  static let rsa = [makeRSA(), makeRSA()]

  private static func makeRSA() -> _RSA.Signing.PrivateKey {
    do { return try _RSA.Signing.PrivateKey(keySize: .bits2048) } catch {
      // Only without memory or randomness.
      fatalError("no RSA key can be made: \(error)")
    }
  }

  /// Signs a payload with the key's usual algorithm. `header` replaces the usual header, and `algorithm` its `alg`.
  static func token(_ payload: String, key: Key, algorithm: String? = nil, header: String? = nil) throws -> String {
    let usual =
      switch key {
      case .rsa: "RS256"
      case .p256: "ES256"
      case .ed25519: "EdDSA"
      }
    let id = key.id.map { #","kid":"\#($0)""# } ?? ""
    let header = header ?? #"{"alg":"\#(algorithm ?? usual)","typ":"JWT"\#(id)}"#
    let signed = base64URL(Array(header.utf8)) + "." + base64URL(Array(payload.utf8))
    let signature: Data =
      switch key {
      case .rsa(_, let key):
        switch algorithm {
        case "PS256": try key.signature(for: SHA256.hash(data: Data(signed.utf8)), padding: .PSS).rawRepresentation
        case "RS512":
          try key.signature(for: SHA512.hash(data: Data(signed.utf8)), padding: .insecurePKCS1v1_5).rawRepresentation
        default:
          try key.signature(for: SHA256.hash(data: Data(signed.utf8)), padding: .insecurePKCS1v1_5).rawRepresentation
        }
      case .p256(_, let key): try key.signature(for: Data(signed.utf8)).rawRepresentation
      case .ed25519(_, let key): try key.signature(for: Data(signed.utf8))
      }
    return signed + "." + base64URL(Array(signature))
  }

  /// The key set of the public keys, with further members of each key and further keys.
  static func keySet(_ keys: [Key], members: String = #","use":"sig""#, others: [String] = []) throws -> [UInt8] {
    let own = try keys.map { key in
      let id = key.id.map { #","kid":"\#($0)""# } ?? ""
      return switch key {
      case .rsa(_, let key):
        try {
          let numbers = try key.publicKey.getKeyPrimitives()
          return
            #"{"kty":"RSA"\#(id),"n":"\#(base64URL(Array(numbers.modulus)))","e":"\#(base64URL(Array(numbers.publicExponent)))"\#(members)}"#
        }()
      case .p256(_, let key):
        {
          let point = Array(key.publicKey.rawRepresentation)
          return
            #"{"kty":"EC","crv":"P-256"\#(id),"x":"\#(base64URL(Array(point[..<32])))","y":"\#(base64URL(Array(point[32...])))"\#(members)}"#
        }()
      case .ed25519(_, let key):
        #"{"kty":"OKP","crv":"Ed25519"\#(id),"x":"\#(base64URL(Array(key.publicKey.rawRepresentation)))"\#(members)}"#
      }
    }
    return Array(#"{"keys":[\#((own + others).joined(separator: ","))]}"#.utf8)
  }

  static func base64URL(_ bytes: [UInt8]) -> String {
    Data(bytes).base64EncodedString().replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: "")
  }
}
