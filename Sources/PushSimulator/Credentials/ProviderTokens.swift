import Crypto
import FanfareCore
import Synchronization

/// Checks APNs provider tokens (ES256, one key).
///
/// A token is verified once and then recognised by its bytes: verifying takes longer than everything else that a push
/// needs.
final class ProviderTokens: Sendable {
  /// A token is good for an hour from its `iat`; Apple: "APNs rejects any token whose timestamp is not within the last
  /// hour".
  static let lifetime: Int64 = 3600
  /// How far a signer's clock may be ahead, in seconds.
  static let clockSkew: Int64 = 60
  /// Tokens remembered as good, and as many as expired: more than an hour of signing can fill.
  static let limit = 1000

  private let state: Mutex<State>

  /// The app's key, and the ids that belong to it.
  private struct Issuer {
    let key: P256.Signing.PublicKey
    let keyID: String
    let teamID: String

    init(_ app: SimulatorCredentials.APNsApp) throws {
      key = try P256.Signing.PrivateKey(pemRepresentation: app.privateKeyPEM).publicKey
      keyID = app.keyID
      teamID = app.teamID
    }
  }

  private struct State {
    var issuer: Issuer
    /// Issue times of verified tokens, in seconds, by the whole field. Bounded: emptied when it has grown to the limit.
    var verified: [String: Int64] = [:]
    /// The token asked about last, which is nearly always the one asked about next.
    var last: (token: String, issuedAt: Int64)?
    /// Issue times of tokens that count as expired whatever their age. Bounded: the oldest go first, which end soonest
    /// by themselves.
    var revoked: [String: Int64] = [:]
  }

  /// Tokens of the app's key. Throws when the key is not a P-256 key in PEM.
  init(_ app: SimulatorCredentials.APNsApp) throws {
    state = Mutex(State(issuer: try Issuer(app)))
  }

  /// The id of the key.
  var keyID: String { state.withLock { $0.issuer.keyID } }

  /// Takes another key instead: nothing that was signed with the one before is good any more. Throws as `init` does.
  func replaceKey(_ app: SimulatorCredentials.APNsApp) throws {
    let issuer = try Issuer(app)
    state.withLock { $0 = State(issuer: issuer) }
  }

  /// Why a push with this `authorization`, whose token begins behind the scheme, is refused at `now`; nil when it is
  /// not.
  ///
  /// The field is remembered as it is: cutting the token out would cost a copy per push.
  func complaint(about token: String, schemeLength: Int, now: UnixTime) -> APNsReason? {
    let (known, isRevoked) = state.withLock { state -> (Int64?, Bool) in
      if let last = state.last, last.token == token { return (last.issuedAt, false) }
      guard let issuedAt = state.verified[token] else { return (nil, state.revoked[token] != nil) }
      state.last = (token, issuedAt)
      return (issuedAt, false)
    }
    if isRevoked { return .expiredProviderToken }
    guard let issuedAt = known ?? verify(token, schemeLength: schemeLength) else { return .invalidProviderToken }
    guard issuedAt <= now.seconds + Self.clockSkew else { return .invalidProviderToken }
    guard issuedAt > now.seconds - Self.lifetime else { return .expiredProviderToken }
    return nil
  }

  /// Makes every token that has been good so far, of the newest `limit`, count as expired. By their bytes and not by
  /// their age, so that a token signed anew in the same second is good.
  func expireAll() {
    state.withLock { state in
      state.revoked.merge(state.verified) { $1 }
      for old in state.revoked.sorted(by: { $0.value > $1.value }).dropFirst(Self.limit) {
        state.revoked[old.key] = nil
      }
      state.verified = [:]
      state.last = nil
    }
  }

  private func verify(_ token: String, schemeLength: Int) -> Int64? {
    let issuer = state.withLock { $0.issuer }
    guard let parsed = CompactToken(token.utf8.dropFirst(schemeLength)), parsed.header["alg"] == "ES256",
      parsed.header["kid"] == issuer.keyID,
      parsed.claims.issuer == issuer.teamID, let issuedAt = parsed.claims.issuedAt,
      // A signature that is not r‖s in 64 bytes, such as DER, is refused: RFC 7518 §3.4.
      let signature = Self.signature(parsed.signature), issuer.key.isValidSignature(signature, for: parsed.signedBytes)
    else { return nil }
    state.withLock { state in
      if state.verified.count >= Self.limit { state.verified.removeAll() }
      state.verified[token] = issuedAt
    }
    return issuedAt
  }

  private static func signature(_ bytes: [UInt8]) -> P256.Signing.ECDSASignature? {
    // The initialiser throws only for a wrong length, which is the answer.
    try? P256.Signing.ECDSASignature(rawRepresentation: bytes)
  }
}
