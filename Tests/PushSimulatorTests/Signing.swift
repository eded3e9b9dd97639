import JWTKit
import PushSimulator

/// The claims of a provider token.
struct ProviderClaims: JWTPayload {
  var iss: String
  var iat: Int

  func verify(using algorithm: some JWTAlgorithm) async throws {}
}

/// The claims of a service account's assertion.
struct AssertionClaims: JWTPayload {
  var iss: String
  var aud: String
  var scope: String?
  var iat: Int
  var exp: Int

  func verify(using algorithm: some JWTAlgorithm) async throws {}
}

/// Signs with JWTKit, which the simulator does not use.
enum Signing {
  /// A provider token, `age` seconds old.
  static func providerToken(
    _ app: SimulatorCredentials.APNsApp, age: Int = 0, keyID: String? = nil, teamID: String? = nil,
    key: ES256PrivateKey? = nil
  ) async throws -> String {
    let keys = JWTKeyCollection()
    let id = JWKIdentifier(string: keyID ?? app.keyID)
    await keys.add(ecdsa: try key ?? ES256PrivateKey(pem: app.privateKeyPEM), kid: id)
    let now = Int(SystemNow.seconds)
    return "bearer " + (try await keys.sign(ProviderClaims(iss: teamID ?? app.teamID, iat: now - age), kid: id))
  }

  /// An assertion; `change` makes it invalid.
  static func assertion(
    _ account: SimulatorCredentials.GoogleServiceAccount, keyID: String? = nil, key: String? = nil,
    change: (inout AssertionClaims) -> Void = { _ in }
  ) async throws -> String {
    let now = Int(SystemNow.seconds)
    var claims = AssertionClaims(
      iss: account.clientEmail, aud: "https://oauth2.googleapis.com/token",
      scope: "https://www.googleapis.com/auth/firebase.messaging", iat: now, exp: now + 3600)
    change(&claims)
    let keys = JWTKeyCollection()
    let id = JWKIdentifier(string: keyID ?? account.privateKeyID)
    await keys.add(
      rsa: try Insecure.RSA.PrivateKey(pem: key ?? account.privateKeyPEM), digestAlgorithm: .sha256, kid: id)
    return try await keys.sign(claims, kid: id)
  }
}
