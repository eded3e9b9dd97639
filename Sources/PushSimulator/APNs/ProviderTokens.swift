import Crypto
import FanfareCore
import Synchronization

/// Checks APNs provider tokens (ES256, one key).
///
/// A token is verified once and then recognised by its bytes, because verification takes longer than the rest of a
/// push.
final class ProviderTokens: Sendable {
  /// The lifetime after `iat`, in seconds. Apple: "APNs rejects any token whose timestamp is not within the last hour".
  static let lifetime: Int64 = 3600
  /// How far a signer's clock may be ahead, in seconds.
  static let clockSkew: Int64 = 60
  /// The most verified tokens, and the most revoked ones: more than an hour of signing produces.
  static let limit = 1000

  private let state: Mutex<State>

  /// The app's key and its ids.
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
    /// Issue times (seconds) of verified tokens by the whole header field. Emptied when it reaches `limit`.
    var verified: [String: Int64] = [:]
    /// The token checked last, which is nearly always the next one too.
    var last: (token: String, issuedAt: Int64)?
    /// Issue times of tokens that count as expired at any age. The oldest, which expire first anyway, are removed
    /// first.
    var revoked: [String: Int64] = [:]
  }

  /// Throws if the key is not a P-256 key in PEM.
  init(_ app: SimulatorCredentials.APNsApp) throws { state = Mutex(State(issuer: try Issuer(app))) }

  /// The id of the key.
  var keyID: String { state.withLock { $0.issuer.keyID } }

  /// Replaces the key; nothing signed with the old one is valid any more. Throws as `init` does.
  func replaceKey(_ app: SimulatorCredentials.APNsApp) throws {
    let issuer = try Issuer(app)
    state.withLock { $0 = State(issuer: issuer) }
  }

  /// Why a push with this `authorization` is refused at `now`; nil if it is accepted.
  ///
  /// `token` is the whole field, of which the scheme takes `schemeLength` bytes: cutting it would copy it for every
  /// push.
  func refusal(of token: String, schemeLength: Int, now: UnixTime) -> APNsReason? {
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

  /// Expires the newest `limit` tokens that were valid. By their bytes and not their age, so that a token signed again
  /// in the same second is valid.
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
      // A signature other than r‖s in 64 bytes, such as DER, is refused (RFC 7518 §3.4).
      let signature = Self.signature(parsed.signature), issuer.key.isValidSignature(signature, for: parsed.signedBytes)
    else { return nil }
    state.withLock { state in
      if state.verified.count >= Self.limit { state.verified.removeAll() }
      state.verified[token] = issuedAt
    }
    return issuedAt
  }

  private static func signature(_ bytes: [UInt8]) -> P256.Signing.ECDSASignature? {
    // The initialiser throws only for a wrong length.
    try? P256.Signing.ECDSASignature(rawRepresentation: bytes)
  }
}
