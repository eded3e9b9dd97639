import FanfareCore
import Synchronization

/// Keeps the access token of one sender; pushes wait while a single request fetches it.
final class AccessTokenKeeper: Sendable {
  /// Receives a token, or the outcome of pushes that cannot have one. May be called before the call that registers it
  /// returns.
  typealias Continuation = @Sendable (Result<AccessToken, PushOutcome>) -> Void

  private struct Guarded {
    var tokens = AccessTokenState()
    var waiters: [Continuation] = []
    var waitingPushes = 0
    var isClosed = false

    mutating func takeWaiters() -> [Continuation] {
      defer {
        waiters = []
        waitingPushes = 0
      }
      return waiters
    }
  }

  private let guarded = Mutex(Guarded())
  private let maximumWaitingPushes: Int
  private let clock: any WallClock
  private let wakeups: AsyncStream<Void>
  private let waker: AsyncStream<Void>.Continuation

  /// `maximumWaitingPushes` limits the pushes that wait for a token.
  init(maximumWaitingPushes: Int, clock: any WallClock) {
    self.maximumWaitingPushes = maximumWaitingPushes
    self.clock = clock
    (wakeups, waker) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
  }

  /// Fetches tokens when they are needed, until the task is cancelled; then fails the waiting pushes with `.closed`.
  /// `fetch` must have its own time limit. `observe` receives every answer, and the expiry of the token in use.
  func run(
    fetch: @Sendable () async -> TokenAnswer, observe: @Sendable (TokenAnswer, _ expiresAt: UnixTime?) -> Void
  ) async {
    prepare()
    for await _ in wakeups {
      let answer = await fetch()
      let now = clock.now()
      let (waiters, use, startsFetch) = guarded.withLock { guarded in
        guarded.tokens.fetched(answer, now: now)
        let (use, startsFetch) = guarded.tokens.use(now: now)
        return (guarded.takeWaiters(), use, startsFetch)
      }
      if startsFetch { waker.yield() }
      observe(answer, guarded.withLock { $0.tokens.token?.expiresAt })
      for waiter in waiters { waiter(Self.result(of: use)) }
    }
    let waiters = guarded.withLock { guarded in
      guarded.isClosed = true
      return guarded.takeWaiters()
    }
    for waiter in waiters { waiter(.failure(.closed)) }
  }

  /// Starts a fetch if one is due, so that the first push after a quiet time need not wait for it.
  func prepare() {
    let now = clock.now()
    if guarded.withLock({ $0.tokens.use(now: now).startsFetch }) { waker.yield() }
  }

  /// Calls the continuation with a token for this many pushes, as soon as there is one.
  func withToken(pushes: Int, _ continuation: @escaping Continuation) {
    let now = clock.now()
    let (result, startsFetch): (Result<AccessToken, PushOutcome>?, Bool) = guarded.withLock { guarded in
      guard !guarded.isClosed else { return (.failure(.closed), false) }
      let (use, startsFetch) = guarded.tokens.use(now: now)
      guard case .wait = use else { return (Self.result(of: use), startsFetch) }
      guard guarded.waitingPushes + pushes <= maximumWaitingPushes else { return (.failure(.queueFull), startsFetch) }
      guarded.waiters.append(continuation)
      guarded.waitingPushes += pushes
      return (nil, startsFetch)
    }
    if startsFetch { waker.yield() }
    if let result { continuation(result) }
  }

  /// Starts a fetch with the new credential at once.
  func credentialReplaced() {
    let now = clock.now()
    if guarded.withLock({ $0.tokens.credentialReplaced(now: now) }) { waker.yield() }
  }

  /// The service has accepted a push with the token of this generation.
  func worked(generation: Int) {
    guarded.withLock { $0.tokens.worked(generation: generation) }
  }

  /// Whether the service has accepted a push with the token of this generation.
  func hasWorked(generation: Int) -> Bool {
    guarded.withLock { $0.tokens.hasWorked(generation: generation) }
  }

  /// The service has refused the token of this generation. Returns what that means for the push.
  func refused(generation: Int, reason: String) -> PushOutcome.Verdict {
    let now = clock.now()
    let (verdict, startsFetch) = guarded.withLock {
      $0.tokens.refused(generation: generation, reason: reason, now: now)
    }
    if startsFetch { waker.yield() }
    return verdict
  }

  private static func result(of use: AccessTokenState.Use) -> Result<AccessToken, PushOutcome> {
    switch use {
    case .send(let token): .success(token)
    case .refuse(let outcome): .failure(outcome)
    // A fetch that follows a fetch at once is not worth waiting for.
    case .wait: .failure(.tokenUnavailable)
    }
  }
}
