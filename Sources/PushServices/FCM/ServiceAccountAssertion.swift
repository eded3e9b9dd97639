import FanfareCore
import JWTKit

/// The claims by which a service account asks for an access token (RFC 7523, as Google profiles it).
struct ServiceAccountAssertion: JWTPayload {
  /// What Google takes an assertion for at most.
  static let lifetime: Int64 = 3600
  /// Sending through FCM, and nothing else.
  static let messagingScope = "https://www.googleapis.com/auth/firebase.messaging"
  /// The grant type of the request that carries it.
  static let grantType = "urn:ietf:params:oauth:grant-type:jwt-bearer"

  let iss: String
  let scope: String
  let aud: String
  let iat: Int64
  let exp: Int64

  /// The claims of an account, made at the given moment.
  init(account: ServiceAccountKey, now: UnixTime) {
    iss = account.clientEmail
    scope = Self.messagingScope
    aud = account.tokenURI
    iat = now.seconds
    exp = now.seconds + Self.lifetime
  }

  /// Nothing to verify: we only sign these.
  func verify(using algorithm: some JWTAlgorithm) async throws {}

  /// The signed assertion, RS256. Throws when the library cannot sign.
  func signed(by account: ServiceAccountKey) async throws -> String {
    let keys = JWTKeyCollection()
    let keyID = JWKIdentifier(string: account.keyID)
    await keys.add(rsa: account.privateKey, digestAlgorithm: .sha256, kid: keyID)
    return try await keys.sign(self, kid: keyID)
  }
}
