import CryptoExtras
import FanfareCore
import Synchronization

/// Google's token endpoint: exchanges a service account's signed assertion for an access token (RFC 7523).
final class GoogleToken: Sendable {
  /// The audience of the real endpoint, which is accepted here too.
  static let audience = "https://oauth2.googleapis.com/token"
  /// The path of the endpoint here.
  static let path = "/token"
  /// The scopes that allow sending.
  static let scopes: Set<Substring> = [
    "https://www.googleapis.com/auth/firebase.messaging", "https://www.googleapis.com/auth/cloud-platform",
  ]
  private static let grantType = "urn:ietf:params:oauth:grant-type:jwt-bearer"
  /// The accepted deviation of a signer's clock, in seconds.
  private static let clockSkew: Int64 = 300

  let tokens: AccessTokens
  private let issuer: Mutex<Issuer>
  private let injector: FaultInjector
  private let clock: any WallClock

  private struct Issuer {
    let account: SimulatorCredentials.GoogleServiceAccount
    let key: _RSA.Signing.PublicKey

    init(_ account: SimulatorCredentials.GoogleServiceAccount) throws {
      self.account = account
      key = try _RSA.Signing.PrivateKey(pemRepresentation: account.privateKeyPEM).publicKey
    }
  }

  /// Throws if the account's key is invalid.
  init(
    _ configuration: SimulatorConfiguration, account: SimulatorCredentials.GoogleServiceAccount, injector: FaultInjector
  ) throws {
    issuer = Mutex(try Issuer(account))
    tokens = AccessTokens(
      prefix: "ya29.", lifetime: configuration.tokenLifetime ?? .seconds(3600), clock: configuration.clock)
    self.injector = injector
    clock = configuration.clock
  }

  /// Replaces the key; access tokens obtained with the old one end. Throws if no key can be generated.
  func replaceKey() throws -> SimulatorCredentials.GoogleServiceAccount {
    let account = try SimulatorCredentials.GoogleServiceAccount(
      projectID: issuer.withLock { $0.account.projectID })
    let replacement = try Issuer(account)
    issuer.withLock { $0 = replacement }
    tokens.expireAll()
    return account
  }

  func react(to request: SimulatedRequest) -> Reaction {
    injector.reaction(of: .googleToken, refusal: refusal(of: request), render: TokenAnswer.fault) {
      injector.store.countAccepted(.googleToken)
      // The real endpoint also reports a second less than the hour.
      return TokenAnswer.success(token: tokens.issue(), type: "Bearer", expiresIn: String(max(tokens.seconds - 1, 0)))
    }
  }

  private func refusal(of request: SimulatedRequest) -> ServiceAnswer? {
    let form = request.form
    guard form["grant_type"] == Self.grantType else {
      return TokenAnswer.failure(400, "unsupported_grant_type", "Invalid grant_type: \(form["grant_type"] ?? "")")
    }
    guard let text = form["assertion"], !text.isEmpty else {
      return TokenAnswer.failure(400, "invalid_request", "Missing required parameter: assertion")
    }
    guard let assertion = CompactToken(text.utf8) else { return invalidGrant("Bad Request") }
    let issuer = issuer.withLock { $0 }
    guard assertion.header["alg"] == "RS256" else { return invalidGrant("Invalid signing algorithm.") }
    if let kid = assertion.header["kid"], kid != issuer.account.privateKeyID {
      return invalidGrant("Invalid JWT Signature.")
    }
    guard assertion.claims.issuer == issuer.account.clientEmail else {
      return invalidGrant("Invalid grant: account not found")
    }
    guard
      issuer.key.isValidSignature(
        .init(rawRepresentation: assertion.signature), for: assertion.signedBytes, padding: .insecurePKCS1v1_5)
    else { return invalidGrant("Invalid JWT Signature.") }
    return refusal(of: assertion.claims, own: "https://\(request.authority)\(request.path)")
  }

  /// `own` is the URL of this endpoint.
  private func refusal(of claims: CompactToken.Claims, own: String) -> ServiceAnswer? {
    guard claims.audience == Self.audience || claims.audience == own else {
      return invalidGrant("Invalid JWT: Failed audience check.")
    }
    let now = clock.now().seconds
    let inaccurate = "Invalid JWT: Token must be a short-lived token (60 minutes) and in a reasonable timeframe."
    guard let issuedAt = claims.issuedAt, let expiresAt = claims.expiresAt, issuedAt <= now + Self.clockSkew,
      expiresAt > now - Self.clockSkew, expiresAt > issuedAt, expiresAt <= issuedAt + 3600
    else { return invalidGrant(inaccurate) }
    guard let scope = claims.scope, !scope.isEmpty else {
      return TokenAnswer.failure(400, "invalid_scope", "Empty or missing scope not allowed.")
    }
    guard scope.split(separator: " ").contains(where: Self.scopes.contains) else {
      return TokenAnswer.failure(400, "invalid_scope", "Invalid OAuth scope or ID token audience provided.")
    }
    return nil
  }

  private func invalidGrant(_ description: String) -> ServiceAnswer {
    TokenAnswer.failure(400, "invalid_grant", description)
  }
}
