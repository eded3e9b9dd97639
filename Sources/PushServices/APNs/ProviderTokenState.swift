import FanfareCore

/// When a provider token is signed, used and given up: a value that decides, under `APNsCredential`'s lock.
///
/// Apple's rules: a token is good for an hour, and a new one more than once in 20 minutes is an error. What a clock
/// that was ahead has signed counts as too old once the clock is right: APNs refuses what is of the future.
struct ProviderTokenState: Sendable {
  /// The age at which a token is replaced.
  static let renewalAge: Duration = .seconds(45 * 60)
  /// No two tokens are signed within this time.
  static let minimumAge: Duration = .seconds(20 * 60)
  /// The age at which APNs refuses a token.
  static let maximumAge: Duration = .seconds(60 * 60)
  /// So far in the future a token may have been signed: clocks are set by a little all the time.
  static let tolerance: Duration = .seconds(60)

  /// A token, and when it was signed.
  struct Token: Sendable {
    let value: String
    let issuedAt: UnixTime
    /// Counts the changes of token, so that an answer can be laid at the door of the token that it was given to.
    let generation: Int
  }

  private(set) var current: Token?
  private var previous: Token?
  private var lastSignedAt: UnixTime?
  private var generation = 0

  /// The token to use now, signed anew if it is due. Throws what `sign` throws, unless the present one still serves.
  mutating func token(now: UnixTime, sign: (UnixTime) throws -> String) throws -> Token {
    if let current, age(current.issuedAt, now) < Self.renewalAge { return current }
    if let current, isAhead(current.issuedAt, now), let previous, age(previous.issuedAt, now) < Self.renewalAge {
      return use(previous)
    }
    if let current, !maySign(now: now) {
      // Too young, of the two, is better than too old.
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

  /// APNs calls the token of this generation expired. True when another one is used from now on; false when the present
  /// one is too young to be replaced, which only a wrong clock explains.
  mutating func expired(generation: Int, now: UnixTime, sign: (UnixTime) throws -> String) throws -> Bool {
    guard let current, current.generation == generation else { return true }
    guard maySign(now: now) else { return false }
    _ = try replace(now: now, sign: sign)
    return true
  }

  /// APNs has seen too many tokens. The one before is used again as long as it lives, and nothing is signed until 20
  /// minutes after the last signature.
  mutating func updatedTooOften(generation: Int, now: UnixTime) {
    guard let current, current.generation == generation, let previous, previous.issuedAt < current.issuedAt,
      age(previous.issuedAt, now) < Self.maximumAge
    else { return }
    _ = use(previous)
  }

  /// The token before is the one to use, and the present one the one before.
  private mutating func use(_ token: Token) -> Token {
    generation += 1
    let token = Token(value: token.value, issuedAt: token.issuedAt, generation: generation)
    previous = current
    current = token
    return token
  }

  /// The key is another one now: what was signed with the one before is forgotten, and so is how lately that was.
  mutating func forget() {
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

  private func maySign(now: UnixTime) -> Bool {
    lastSignedAt.map { age($0, now) >= Self.minimumAge } ?? true
  }

  private func age(_ moment: UnixTime, _ now: UnixTime) -> Duration {
    isAhead(moment, now) ? Self.maximumAge : now - moment
  }

  private func isAhead(_ moment: UnixTime, _ now: UnixTime) -> Bool { moment > now + Self.tolerance }
}

extension ProviderTokenState.Token: CustomStringConvertible, CustomReflectable {
  /// Nothing of the token.
  var description: String { "provider token \(generation)" }

  /// Keeps `dump` and interpolation of an enclosing value from printing the token.
  var customMirror: Mirror { Mirror(self, children: [:]) }
}
