import Crypto
import FanfareCore
import FoundationEssentials

/// State machine of the provider token: when it is signed, used and discarded. Guarded by `APNsCredential`'s lock.
///
/// Apple's rules: a token is valid for an hour, and replacing it more than once in 20 minutes is an error. APNs refuses
/// tokens from the future, so a token that was signed while the clock was ahead counts as too old after the clock is
/// corrected.
struct ProviderTokenState: Sendable {
  /// The age at which a token is replaced.
  static let renewalAge: Duration = .seconds(45 * 60)
  /// The least time between two signatures.
  static let minimumAge: Duration = .seconds(20 * 60)
  /// The age at which APNs refuses a token.
  static let maximumAge: Duration = .seconds(60 * 60)
  /// How far in the future a token may have been signed, because clocks are adjusted by small steps all the time.
  static let tolerance: Duration = .seconds(60)

  /// A signed token.
  struct Token: Sendable {
    let value: String
    let issuedAt: UnixTime
    /// Numbers the changes of token, so that an answer can be attributed to the token that it is about.
    let generation: Int
  }

  private(set) var current: Token?
  private var previous: Token?
  private var lastSignedAt: UnixTime?
  private var generation = 0

  /// Returns the token to use now, and signs a new one if it is due. Throws what `sign` throws, unless the current one
  /// is still valid.
  mutating func token(now: UnixTime, sign: (UnixTime) throws -> String) throws -> Token {
    if let current, age(current.issuedAt, now) < Self.renewalAge { return current }
    if let current, isAhead(current.issuedAt, now), let previous, age(previous.issuedAt, now) < Self.renewalAge {
      return use(previous)
    }
    if let current, !maySign(now: now) {
      // Of the two, the token from the future may still be accepted; the old one certainly is not.
      if age(current.issuedAt, now) >= Self.maximumAge, let previous { return use(previous) }
      return current
    }
    do {
      return try replace(now: now, sign: sign)
    } catch {
      if let current, age(current.issuedAt, now) < Self.maximumAge { return current }
      throw error
    }
  }

  /// APNs reports the token of this generation as expired. Returns whether another one is used from now on; false if
  /// the current one is too young to be replaced, which means that the clock is wrong.
  mutating func expired(generation: Int, now: UnixTime, sign: (UnixTime) throws -> String) throws -> Bool {
    guard let current, current.generation == generation else { return true }
    guard maySign(now: now) else { return false }
    _ = try replace(now: now, sign: sign)
    return true
  }

  /// Whether the token of this generation is in use and may be replaced now.
  func mayReplace(generation: Int, now: UnixTime) -> Bool { current?.generation == generation && maySign(now: now) }

  /// APNs has seen too many tokens. The previous one is used again while it is valid, and nothing is signed until 20
  /// minutes after the last signature.
  mutating func updatedTooOften(generation: Int, now: UnixTime) {
    guard let current, current.generation == generation, let previous, previous.issuedAt < current.issuedAt,
      age(previous.issuedAt, now) < Self.maximumAge
    else { return }
    _ = use(previous)
  }

  /// Swaps the current and the previous token.
  private mutating func use(_ token: Token) -> Token {
    generation += 1
    let token = Token(value: token.value, issuedAt: token.issuedAt, generation: generation)
    previous = current
    current = token
    return token
  }

  /// The key has been replaced: forgets the tokens of the old one and when it last signed.
  mutating func reset() {
    current = nil
    previous = nil
    lastSignedAt = nil
  }

  private mutating func replace(now: UnixTime, sign: (UnixTime) throws -> String) throws -> Token {
    let value = try sign(now)
    generation += 1
    let token = Token(value: value, issuedAt: now, generation: generation)
    previous = current
    current = token
    lastSignedAt = now
    return token
  }

  private func maySign(now: UnixTime) -> Bool { lastSignedAt.map { age($0, now) >= Self.minimumAge } ?? true }

  private func age(_ moment: UnixTime, _ now: UnixTime) -> Duration {
    isAhead(moment, now) ? Self.maximumAge : now - moment
  }

  private func isAhead(_ moment: UnixTime, _ now: UnixTime) -> Bool { moment > now + Self.tolerance }
}

extension ProviderTokenState.Token: Redacted {
  var description: String { "provider token \(generation)" }
}

/// Signs provider tokens ("Establishing a token-based connection to APNs"): JSON Web Tokens with ES256.
struct ProviderTokenSigner: Sendable {
  private let key: P256.Signing.PrivateKey
  private let keyID: String
  private let teamID: String

  /// Throws if the key is not a P-256 key in PEM.
  init(_ configuration: APNsConfiguration) throws(PushConfigurationError) {
    do {
      key = try P256.Signing.PrivateKey(pemRepresentation: configuration.privateKey)
    } catch {
      // The parser's own error may quote the key.
      throw PushConfigurationError(field: "privateKey", problem: "must be a P-256 key in PKCS #8 PEM")
    }
    keyID = configuration.keyID
    teamID = configuration.teamID
  }

  /// Whether both sign with the same key for the same team.
  func isSame(as other: Self) -> Bool {
    keyID == other.keyID && teamID == other.teamID
      && key.publicKey.rawRepresentation == other.key.publicKey.rawRepresentation
  }

  /// Signs a token issued at this moment, valid for an hour.
  func sign(issuedAt: UnixTime) throws -> String {
    let header = JSONWriter.object { json in
      json.member("alg", "ES256")
      json.member("kid", keyID)
    }
    let claims = JSONWriter.object { json in
      json.member("iss", teamID)
      json.member("iat", issuedAt.seconds)
    }
    let signed = Self.base64URL(header) + "." + Self.base64URL(claims)
    let signature = try key.signature(for: Data(signed.utf8)).rawRepresentation
    return signed + "." + Self.base64URL(signature)
  }

  private static func base64URL(_ bytes: some Sequence<UInt8>) -> String {
    Data(bytes).base64EncodedString(options: [.base64URLAlphabet, .omitPaddingCharacter])
  }
}
