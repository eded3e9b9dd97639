import FanfareCore

/// When an access token is used, fetched, kept and given up: a value that decides, for `AccessTokenKeeper` to carry
/// out.
struct AccessTokenState: Sendable {
  /// So long before its end a token is replaced, while it still serves.
  static let renewalMargin: Duration = .seconds(300)
  /// The pause after the first failure to fetch; doubled by every further one.
  static let firstBackoff: Duration = .seconds(1)
  /// The longest pause after a failure, and the pause after a refusal, which only an operator can mend.
  static let maximumBackoff: Duration = .seconds(60)
  /// A token that has worked and is refused is replaced only if it is at least so old: one odd answer must not cost a
  /// token each time.
  static let minimumAge: Duration = .seconds(10)

  /// What is to be done with a push.
  enum Use: Sendable {
    /// Send it with this token.
    case send(AccessToken)
    /// A fetch is on its way.
    case wait
    /// No token is to be had: report this.
    case refuse(PushOutcome)
  }

  private(set) var token: AccessToken?
  /// Whether a fetch is wanted or on its way.
  private(set) var isFetching = false
  /// Why the last fetch, or the last token, failed; nil after a success.
  private(set) var failure: PushOutcome?
  private var fetchedAt: UnixTime?
  private var nextAttemptAt: UnixTime?
  private var failures = 0
  private var generation = 0
  private var hasWorked = false
  /// Whether the service has refused the present token, and it is used again all the same because it is young.
  private var isDoubtful = false
  /// Whether the credential was replaced while a fetch with the one before was on its way.
  private var isOutdated = false
  /// Whether the present token was got with a credential that has been replaced since.
  private var isSuperseded = false
  /// Whether the present token was fetched because the one before it was refused.
  private var isReplacement = false
  /// The token that was refused although it had worked, until there is another. One odd answer must not stop the sender
  /// while none is to be had.
  private var fallback: AccessToken?
  /// Whether the present token is the one that was refused, used again because there was no other, and has not worked
  /// since.
  private var isFallback = false

  /// Decides on pushes to be sent now. True in the second place asks for a fetch to be started.
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

  /// Takes the answer to a fetch in.
  mutating func fetched(_ answer: TokenAnswer, now: UnixTime) {
    isFetching = false
    defer {
      isOutdated = false
      fallback = nil
    }
    if isOutdated {
      // What the credential before was refused says nothing about this one.
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
      nextAttemptAt = now + Self.maximumBackoff
    case .unavailable(_, let retryAfter):
      failures += 1
      let backoff = min(Self.firstBackoff * (1 << min(failures - 1, 6)), Self.maximumBackoff)
      failure = .tokenUnavailable
      nextAttemptAt = now + min(max(retryAfter ?? backoff, backoff), Self.maximumBackoff)
      guard let fallback, now < fallback.expiresAt else { return }
      // Under another number, so that what was refused before does not count against it.
      generation += 1
      token = AccessToken(value: fallback.value, expiresAt: fallback.expiresAt, generation: generation)
      isFallback = true
    }
  }

  /// The credential is another one now. The token that the one before has got is used until there is a new one, unless
  /// the service has refused it. True asks for a fetch to be started.
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

  /// The service has taken a push with the token of this generation.
  mutating func worked(generation: Int) {
    guard token?.generation == generation else { return }
    hasWorked = true
    isReplacement = false
    isDoubtful = false
    isFallback = false
  }

  /// Whether a push has been taken with the token of this generation.
  func hasWorked(generation: Int) -> Bool { token?.generation == generation && hasWorked }

  /// The service has refused the token of this generation. It is replaced once; if its replacement is refused too
  /// before anything worked, the credentials are to blame. True in the second place asks for a fetch to be started.
  mutating func refused(generation: Int, reason: String, now: UnixTime) -> (PushOutcome.Verdict, startsFetch: Bool) {
    guard let token, token.generation == generation else {
      // Either its replacement is there or on its way, or there is none to be had.
      return (token == nil && failure?.verdict == .configurationError ? .configurationError : .reauthenticate, false)
    }
    if !hasWorked, isReplacement {
      self.token = nil
      failure = PushOutcome(.configurationError, reason: reason, status: 401)
      nextAttemptAt = now + Self.maximumBackoff
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
    // A clock that has stepped back must not turn a short pause into a long one.
    if let nextAttemptAt, now < nextAttemptAt, nextAttemptAt - now <= Self.maximumBackoff { return false }
    isFetching = true
    return true
  }

  /// The margin, for a token of short life no more than a fifth of it.
  private static func renewalMargin(lifetime: Duration) -> Duration { min(renewalMargin, lifetime / 5) }
}
