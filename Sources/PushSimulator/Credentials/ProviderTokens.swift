import Crypto
import FanfareCore
import FoundationEssentials
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

/// The valid bearer tokens of one token endpoint.
final class AccessTokens: Sendable {
  private let prefix: String
  private let lifetime: Duration
  private let clock: any WallClock
  private let state = Mutex(State())

  private struct State {
    var expiries: [String: UnixTime] = [:]
    /// In the order of issue, which is the order of expiry.
    var order: [String] = []
  }

  /// The most valid tokens; beyond it the oldest end early.
  static let limit = 10_000

  init(prefix: String, lifetime: Duration, clock: any WallClock) {
    self.prefix = prefix
    self.lifetime = lifetime
    self.clock = clock
  }

  var seconds: Int64 { lifetime.components.seconds }

  /// Issues a new token.
  func issue() -> String {
    let token = prefix + Identifier<AccessTokens>.random().description + Identifier<AccessTokens>.random().description
    let now = clock.now()
    state.withLock { state in
      if state.order.count >= Self.limit {
        let cut = state.order.count - Self.limit / 2
        for old in state.order[..<cut] { state.expiries[old] = nil }
        state.order.removeFirst(cut)
      }
      state.expiries[token] = now + lifetime
      state.order.append(token)
    }
    return token
  }

  /// Whether the token was issued here and is still valid.
  func isGood(_ token: String) -> Bool {
    guard let expiry = state.withLock({ $0.expiries[token] }) else { return false }
    return clock.now() < expiry
  }

  /// Expires all tokens.
  func expireAll() { state.withLock { $0 = State() } }
}

/// A JSON Web Token in compact form, parsed but not verified (RFC 7515 §3.1).
struct CompactToken {
  /// Header parameters whose values are strings.
  let header: [String: String]
  /// The claims that both vendors' tokens use.
  let claims: Claims
  /// The bytes that are signed.
  let signedBytes: [UInt8]
  let signature: [UInt8]

  /// The claims in use; others are skipped.
  struct Claims {
    var issuer: String?
    var audience: String?
    var scope: String?
    var issuedAt: Int64?
    var expiresAt: Int64?
  }

  /// Nil unless the text has three parts of unpadded base64url, the first two of which are JSON objects.
  init?(_ text: some Collection<UInt8>) {
    let parts = text.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
    guard parts.count == 3, let headerBytes = Self.decodeBase64URL(parts[0]),
      let claimBytes = Self.decodeBase64URL(parts[1]),
      let signature = Self.decodeBase64URL(parts[2])
    else { return nil }
    do {
      header = try Self.readHeader(headerBytes)
      claims = try Self.readClaims(claimBytes)
    } catch {
      return nil
    }
    self.signature = signature
    signedBytes = Array(parts[0]) + [UInt8(ascii: ".")] + Array(parts[1])
  }

  private static func readHeader(_ bytes: [UInt8]) throws(JSONError) -> [String: String] {
    var header: [String: String] = [:]
    var reader = try JSONReader(bytes[...])
    try reader.readObject { (key, reader) throws(JSONError) in
      if try reader.nextKind() == .string { header[key.text] = try reader.readString() } else { try reader.skipValue() }
    }
    try reader.finish()
    return header
  }

  private static func readClaims(_ bytes: [UInt8]) throws(JSONError) -> Claims {
    var claims = Claims()
    var reader = try JSONReader(bytes[...])
    try reader.readObject { (key, reader) throws(JSONError) in
      switch key {
      case "iss": claims.issuer = try reader.readString()
      case "aud": claims.audience = try reader.readString()
      case "scope": claims.scope = try reader.readString()
      case "iat": claims.issuedAt = try reader.readInteger()
      case "exp": claims.expiresAt = try reader.readInteger()
      default: try reader.skipValue()
      }
    }
    try reader.finish()
    return claims
  }

  /// Decodes base64url without padding (RFC 4648 §5, RFC 7515 §2); nil for anything else.
  static func decodeBase64URL(_ text: some Collection<UInt8>) -> [UInt8]? {
    guard !text.contains(where: { "+/=".utf8.contains($0) }) else { return nil }
    var base64 = Data(
      text.map { $0 == UInt8(ascii: "-") ? UInt8(ascii: "+") : $0 == UInt8(ascii: "_") ? UInt8(ascii: "/") : $0 })
    base64.append(contentsOf: repeatElement(UInt8(ascii: "="), count: (4 - base64.count % 4) % 4))
    return Data(base64Encoded: base64).map { Array($0) }
  }
}
