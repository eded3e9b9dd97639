import FanfareCore

/// State machine of one access token: when it is used, fetched, kept and discarded. `AccessTokenKeeper` drives it.
struct AccessTokenState: Sendable {
  /// The time before its expiry at which a token is replaced; until then it stays in use.
  static let renewalMargin: Duration = .seconds(300)
  /// Its limit is also the pause after a refusal, which only an operator can resolve.
  static let backoff = Backoff(first: .seconds(1), limit: .seconds(60))
  /// The least age at which a token that has worked is replaced when the service refuses it: a single odd answer must
  /// not cost a token each time.
  static let minimumAge: Duration = .seconds(10)

  /// What to do with a push.
  enum Use: Sendable {
    /// Send it with this token.
    case send(AccessToken)
    /// Wait for the fetch in progress.
    case wait
    /// Report this outcome: there is no token.
    case refuse(PushOutcome)
  }

  private(set) var token: AccessToken?
  /// Whether a fetch is requested or in progress.
  private(set) var isFetching = false
  /// Why the last fetch, or the last token, failed; nil after a success.
  private(set) var failure: PushOutcome?
  private var fetchedAt: UnixTime?
  private var nextAttemptAt: UnixTime?
  private var failures = 0
  private var generation = 0
  private var hasWorked = false
  /// Whether the service has refused the current token, which stays in use because it is young.
  private var isDoubtful = false
  /// Whether the credential was replaced during the fetch in progress.
  private var isOutdated = false
  /// Whether the current token was fetched with a credential that has been replaced since.
  private var isSuperseded = false
  /// Whether the current token was fetched because the service refused the one before.
  private var isReplacement = false
  /// The token that was refused after it had worked, kept until there is another: one odd answer must not stop the
  /// sender while no new token can be fetched.
  private var fallback: AccessToken?
  /// Whether the current token is the former `fallback`, and no push has been accepted with it since.
  private var isFallback = false

  /// Decides about pushes that are to be sent now. `startsFetch` asks the driver to start a fetch.
  mutating func use(now: UnixTime) -> (Use, startsFetch: Bool) {
    if let token, now < token.expiresAt {
      let isDue = token.expiresAt - now <= Self.renewalMargin(lifetime: token.expiresAt - (fetchedAt ?? now))
      return (.send(token), (isDue || isSuperseded) && beginFetch(now: now))
    }
    token = nil
    if isFetching { return (.wait, false) }
    if beginFetch(now: now) { return (.wait, true) }
    return (.refuse(failure ?? .tokenUnavailable), false)
  }

  /// Handles the answer to a fetch.
  mutating func fetched(_ answer: TokenAnswer, now: UnixTime) {
    isFetching = false
    defer {
      isOutdated = false
      fallback = nil
    }
    if isOutdated {
      // A refusal of the former credential says nothing about the new one.
      guard case .granted = answer else { return }
    }
    switch answer {
    case .granted(let value, let lifetime):
      generation += 1
      token = AccessToken(value: value, expiresAt: now + lifetime, generation: generation)
      fetchedAt = now
      nextAttemptAt = nil
      failures = 0
      failure = nil
      hasWorked = false
      isDoubtful = false
      isFallback = false
      isSuperseded = isOutdated
    case .refused(let reason, let status):
      failure = PushOutcome(.configurationError, reason: reason, status: status)
      nextAttemptAt = now + Self.backoff.limit
    case .unavailable(_, let retryAfter):
      failure = .tokenUnavailable
      nextAttemptAt = now + min(max(retryAfter ?? .zero, Self.backoff.wait(failures)), Self.backoff.limit)
      failures += 1
      guard let fallback, now < fallback.expiresAt else { return }
      // With a new generation, so that earlier refusals do not count against it.
      generation += 1
      token = AccessToken(value: fallback.value, expiresAt: fallback.expiresAt, generation: generation)
      isFallback = true
    }
  }

  /// Replaces the credential. The current token stays in use until there is a new one, unless the service has refused
  /// it. Returns whether to start a fetch.
  mutating func credentialReplaced(now: UnixTime) -> Bool {
    if isDoubtful || isFallback { token = nil }
    fallback = nil
    isFallback = false
    isSuperseded = true
    isReplacement = false
    failure = nil
    nextAttemptAt = nil
    failures = 0
    isOutdated = isFetching
    return beginFetch(now: now)
  }

  /// The service has accepted a push with the token of this generation.
  mutating func worked(generation: Int) {
    guard token?.generation == generation else { return }
    hasWorked = true
    isReplacement = false
    isDoubtful = false
    isFallback = false
  }

  /// Whether the service has accepted a push with the token of this generation.
  func hasWorked(generation: Int) -> Bool { token?.generation == generation && hasWorked }

  /// The service has refused the token of this generation. It is replaced once; if the replacement is refused before
  /// any push was accepted, the credential is at fault. `startsFetch` asks the driver to start a fetch.
  mutating func refused(generation: Int, reason: String, now: UnixTime) -> (PushOutcome.Verdict, startsFetch: Bool) {
    guard let token, token.generation == generation else {
      // The token has been replaced already, its replacement is being fetched, or there is none.
      return (token == nil && failure?.verdict == .configurationError ? .configurationError : .reauthenticate, false)
    }
    if !hasWorked, isReplacement {
      self.token = nil
      failure = PushOutcome(.configurationError, reason: reason, status: 401)
      nextAttemptAt = now + Self.backoff.limit
      return (.configurationError, false)
    }
    if isFallback {
      isFallback = false
      self.token = nil
      return (.reauthenticate, beginFetch(now: now))
    }
    if hasWorked, let fetchedAt, now - fetchedAt < Self.minimumAge, now >= fetchedAt {
      isDoubtful = true
      return (.reauthenticate, false)
    }
    if hasWorked { fallback = token }
    self.token = nil
    isReplacement = true
    nextAttemptAt = nil
    return (.reauthenticate, beginFetch(now: now))
  }

  private mutating func beginFetch(now: UnixTime) -> Bool {
    guard !isFetching else { return false }
    // A clock that was set back must not turn a short pause into a long one.
    if let nextAttemptAt, now < nextAttemptAt, nextAttemptAt - now <= Self.backoff.limit { return false }
    isFetching = true
    return true
  }

  /// The margin, but at most a fifth of the lifetime.
  private static func renewalMargin(lifetime: Duration) -> Duration { min(renewalMargin, lifetime / 5) }
}

/// An OAuth 2 access token of one sender.
struct AccessToken: Sendable {
  let value: String
  let expiresAt: UnixTime
  /// Numbers the tokens of the sender, so that an answer can be attributed to the token that it is about.
  let generation: Int
}

extension AccessToken: Redacted {
  var description: String { "access token \(generation)" }
}
