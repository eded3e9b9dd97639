import FanfareCore
import Synchronization

/// Keeps one access token for one sender: fetched by one request at a time, however many pushes wait for it.
final class AccessTokenKeeper: Sendable {
  /// Called with a token, or with the outcome of pushes that can have none; perhaps before the call that handed it in
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

  /// A keeper without a token. `maximumWaitingPushes` bounds what waits for one.
  init(maximumWaitingPushes: Int, clock: any WallClock) {
    self.maximumWaitingPushes = maximumWaitingPushes
    self.clock = clock
    (wakeups, waker) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
  }

  /// Fetches whenever a token is wanted, until the task is cancelled; then nothing waits any more. `fetch` must end
  /// within a time limit of its own; `observe` is told of every answer, and of the token's end where there is one.
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

  /// Starts a fetch if one is due, so that the first push, or the first after a quiet time, need not wait, and the
  /// credential in use is never one that has ended.
  func prepare() {
    let now = clock.now()
    if guarded.withLock({ $0.tokens.use(now: now).startsFetch }) { waker.yield() }
  }

  /// Gives a token to so many pushes, as soon as there is one.
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

  /// The credential that tokens are fetched with is another one now: fetches one with it at once.
  func credentialReplaced() {
    let now = clock.now()
    if guarded.withLock({ $0.tokens.credentialReplaced(now: now) }) { waker.yield() }
  }

  /// The service has taken a push with the token of this generation.
  func worked(generation: Int) {
    guarded.withLock { $0.tokens.worked(generation: generation) }
  }

  /// Whether the service has taken a push with the token of this generation.
  func hasWorked(generation: Int) -> Bool {
    guarded.withLock { $0.tokens.hasWorked(generation: generation) }
  }

  /// The service has refused the token of this generation, with this reason. The verdict is what that means for the
  /// push.
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
    // A fetch that a fetch asks for at once is the next one's business; nobody waits for it.
    case .wait: .failure(.tokenUnavailable)
    }
  }
}
