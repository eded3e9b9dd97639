import Crypto
import FanfareCore

/// Signs provider tokens ("Establishing a token-based connection to APNs"): a JSON Web Token, ES256, with the signature
/// as r and s.
struct ProviderTokenSigner: Sendable {
  private let key: P256.Signing.PrivateKey
  private let keyID: String
  private let teamID: String

  /// Takes the key. Throws when it is no P-256 key in PEM.
  init(_ configuration: APNsConfiguration) throws(PushConfigurationError) {
    do {
      key = try P256.Signing.PrivateKey(pemRepresentation: configuration.privateKey)
    } catch {
      // The parser's own error may quote what it read.
      throw PushConfigurationError(field: "privateKey", problem: "must be a P-256 key in PKCS #8 PEM")
    }
    keyID = configuration.keyID
    teamID = configuration.teamID
  }

  /// Whether both sign with one key for one team.
  func isSame(as other: Self) -> Bool {
    keyID == other.keyID && teamID == other.teamID
      && key.publicKey.rawRepresentation == other.key.publicKey.rawRepresentation
  }

  /// A token issued at the given moment, good for an hour. Throws when the library cannot sign.
  func sign(issuedAt: UnixTime) throws -> String {
    var header: [UInt8] = Array("{\"alg\":\"ES256\",\"kid\":".utf8)
    header.appendJSON(keyID)
    header.append(UInt8(ascii: "}"))
    var claims: [UInt8] = Array("{\"iss\":".utf8)
    claims.appendJSON(teamID)
    claims.append(contentsOf: ",\"iat\":".utf8)
    claims.appendJSON(issuedAt.seconds)
    claims.append(UInt8(ascii: "}"))
    var token: [UInt8] = []
    Base64.append(header, alphabet: .url, to: &token)
    token.append(UInt8(ascii: "."))
    Base64.append(claims, alphabet: .url, to: &token)
    let signature = try key.signature(for: token).rawRepresentation
    token.append(UInt8(ascii: "."))
    Base64.append(signature, alphabet: .url, to: &token)
    return String(decoding: token, as: UTF8.self)
  }
}
