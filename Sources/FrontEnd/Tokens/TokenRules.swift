import FanfareCore

/// Which tokens a hub accepts, and the meaning of their claims.
///
/// The names of claims are dotted paths (`realm_access.roles`). A claim of several texts is an array, or one text of
/// words.
package struct TokenRules: Sendable {
  /// How far the clocks of the issuer and of this machine may differ.
  static let leeway: Duration = .seconds(60)

  /// The exact value of the claim `iss`.
  package var issuer: String
  /// Values of the claim `aud`, of which a token must have at least one.
  package var audiences: [String]
  /// The accepted algorithms of signatures.
  package var algorithms: Set<TokenAlgorithm> = TokenAlgorithm.usual
  /// The claim with the user's name.
  package var userClaim = "sub"
  /// The claim with the names of scopes; nil: the scopes depend on the user and its groups alone.
  package var scopeClaim: String?
  /// The claim with the user's groups.
  package var groupClaim: String?
  /// The claim with the hubs that the token is for; nil: tokens are for every hub with these rules.
  package var hubClaim: String?

  package init(issuer: String, audiences: [String]) {
    self.issuer = issuer
    self.audiences = audiences
  }

  /// Checks the payload of a token whose signature is valid.
  func identity(of payload: [UInt8], hub: HubName, at now: UnixTime) throws(TokenRefusal) -> TokenIdentity {
    let claims = try TokenClaims(payload)
    guard case .text(let issuer) = claims["iss"], issuer.utf8.elementsEqual(self.issuer.utf8) else { throw .issuer }
    guard names(audiences, in: claims["aud"]) else { throw .audience }
    guard let expiry = Self.time(claims["exp"]) else { throw .malformed }
    guard now < expiry + Self.leeway else { throw .expired }
    if let start = claims["nbf"] {
      guard let start = Self.time(start) else { throw .malformed }
      guard start <= now + Self.leeway else { throw .notYetValid }
    }
    if let hubClaim {
      let hubs = claims.texts(at: hubClaim) ?? []
      guard hubs.contains(where: { $0.utf8.elementsEqual(hub.rawValue.utf8) }) else { throw .hub }
    }
    guard case .text(let user) = claims.value(at: userClaim), UserName.isValid(user) else { throw .user }
    return TokenIdentity(
      user: user, scopes: scopeClaim.map { claims.texts(at: $0) ?? [] },
      groups: groupClaim.flatMap { claims.texts(at: $0) } ?? [], expiresAt: expiry + Self.leeway)
  }

  /// Whether one of the values is the claim, or an element of it. An audience may contain spaces.
  private func names(_ values: [String], in claim: TokenClaims.Value?) -> Bool {
    switch claim {
    case .text(let text): values.contains { $0.utf8.elementsEqual(text.utf8) }
    case .list(let list):
      list.contains {
        if case .text(let text) = $0 { values.contains { $0.utf8.elementsEqual(text.utf8) } } else { false }
      }
    default: false
    }
  }

  /// A time in seconds since 1970, possibly with a fraction (RFC 7519 §2, NumericDate).
  private static func time(_ claim: TokenClaims.Value?) -> UnixTime? {
    // Until the year 9999: a later time does not fit into milliseconds at some point.
    guard case .number(let seconds) = claim, (0...253_402_300_799).contains(seconds) else { return nil }
    return UnixTime(milliseconds: Int64(clamping: seconds * 1000))
  }
}

/// The statements of a verified token about its bearer.
struct TokenIdentity: Hashable, Sendable {
  /// A valid user name.
  let user: String
  /// The values of the scope claim; nil if the rules name no such claim.
  let scopes: [String]?
  /// The values of the group claim.
  let groups: [String]
  /// When the token expires, with the leeway.
  let expiresAt: UnixTime
}

/// An asymmetric algorithm of signatures (RFC 7518 §3.1, RFC 8037).
///
/// `none` and the HMAC algorithms are missing on purpose: with public keys, anybody could make such tokens.
package enum TokenAlgorithm: String, CaseIterable, Sendable {
  case rs256 = "RS256"
  case rs384 = "RS384"
  case rs512 = "RS512"
  case ps256 = "PS256"
  case ps384 = "PS384"
  case ps512 = "PS512"
  case es256 = "ES256"
  case es384 = "ES384"
  case es512 = "ES512"
  case edDSA = "EdDSA"

  /// The algorithms that identity providers use by default.
  package static let usual: Set<TokenAlgorithm> = [.rs256, .es256]
}
