package import FanfareCore

/// Turns a push service's outcome into the worker's next action; no other place does.
///
/// The action follows from the outcome, the attempts before it, and the time until the send expires. The dispatcher
/// decides whether a wait is spent in memory or in a retry topic.
package struct RetryPolicy: Hashable, Sendable {
  /// The attempts for one device up to the outcome that is judged.
  struct History: Hashable, Sendable {
    /// How often it was handed over, the judged attempt included.
    var attempts = 0
    /// How often it was sent again at once.
    var quickRetries = 0
    /// How often it has waited.
    var waits = 0
    /// Whether it was sent again after the credential was refused.
    var hasReauthenticated = false
    /// Whether an earlier attempt had no answer, so that the device may have it already.
    var wasUnanswered = false
    /// How many of the attempts were made before it was last held. They do not count against it.
    var heldAttempts = 0
    /// How often it was refused although its sender then worked for another push.
    var contradictions = 0
    /// The time since the first attempt, or since the first one after it was last held.
    var age = Duration.zero

    /// The history of a push that is held: once the sender works again, the push has all its
    /// attempts.
    var held: History {
      History(attempts: attempts, wasUnanswered: wasUnanswered, heldAttempts: attempts, contradictions: contradictions)
    }

    /// The history of a push that is refused alone: its attempts do not count, but its delays grow.
    var refusedAlone: History {
      var history = held
      history.waits = waits
      return history
    }

    /// Whether it was held after its last attempt.
    var isHeld: Bool { attempts > 0 && attempts == heldAttempts }

    fileprivate var countedAttempts: Int { attempts - heldAttempts }
    fileprivate var givenUp: DeviceResult.Outcome { wasUnanswered ? .unconfirmed : .failed }
  }

  /// The action.
  enum Decision: Hashable, Sendable {
    /// The device has its result.
    case finish(DeviceResult.Outcome)
    /// Send again at once.
    case again
    /// Send again after that time.
    case wait(Duration)
    /// Stop the sender, which cannot work, and keep this push behind the others until it can.
    case hold

    /// The decision without its time.
    var action: Action {
      switch self {
      case .finish(let outcome): .finish(outcome)
      case .again: .again
      case .wait: .wait
      case .hold: .hold
      }
    }
  }

  /// A kind of action.
  package enum Action: Hashable, Sendable {
    case finish(DeviceResult.Outcome)
    case again, wait, hold
  }

  /// How often a push is repeated at once if the service certainly has not received it.
  package var quickRetries = 3
  /// The most times one push is handed to a service that works.
  /// Attempts up to the last one for which it was held do not count: while the configuration is refused, a push is kept
  /// until the send expires, however often it is the probe.
  package var maximumAttempts = 8
  /// How often a push may be held although its sender then worked for others.
  /// After one more refusal the push itself is at fault: it fails with the service's reason, and the sender continues.
  /// This bounds how often one push stops the others.
  package var maximumContradictions = 3
  /// The delays of a push whose device alone is refused.
  package var alone = Backoff(first: .seconds(5), limit: .seconds(5 * 60))
  /// The longest single wait. If a service asks for more, the push is given up.
  package var maximumDelay = Duration.seconds(60 * 60)
  /// How long after the first attempt a push may still begin to wait.
  package var maximumAge = Duration.seconds(60 * 60)
  /// How often a push without an answer is repeated.
  package var unansweredRetries = 3
  /// The delays of a push without an answer.
  package var unanswered = Backoff(first: .seconds(2), limit: .seconds(30))
  /// The delays of a push that never reached the service, which may be back at any time.
  package var unreachable = Backoff(first: .seconds(5), limit: .seconds(10 * 60))
  /// The least delays if the service names one: a time in the past comes from another clock.
  package var leastAsked = Backoff(first: .seconds(1), limit: .seconds(60))

  package init() {}

  /// The action for an outcome.
  /// `jitter` is uniform in 0..<1; `remaining` is the time until the send expires. `isAlone`: the credential is refused
  /// for this device only.
  func decide(
    _ outcome: PushOutcome, on platform: Platform, history: History, remaining: Duration, jitter: Double,
    isAlone: Bool = false
  ) -> Decision {
    switch outcome.verdict {
    case .accepted: return .finish(.delivered)
    case .rejected, .malformed: return .finish(.rejected)
    case .deviceGone: return .finish(.deviceGone)
    // The sender has had its chance to get a new credential; the operator must resolve a second refusal.
    case .reauthenticate where !history.hasReauthenticated: return .again
    case .configurationError where isAlone, .reauthenticate where isAlone:
      return wait(
        alone.delay(history.waits, jitter: jitter), history: history.refusedAlone, remaining: remaining,
        otherwise: history.givenUp)
    case .configurationError, .reauthenticate:
      return history.contradictions < maximumContradictions ? .hold : .finish(history.givenUp)
    case .retryHere where history.quickRetries < quickRetries && history.countedAttempts < maximumAttempts:
      return .again
    case .retryHere, .retryLater:
      let delay = delay(after: outcome, on: platform, waits: history.waits, remaining: remaining, jitter: jitter)
      return wait(delay, history: history, remaining: remaining, otherwise: history.givenUp)
    case .unknown:
      guard history.waits < unansweredRetries else { return .finish(.unconfirmed) }
      return wait(
        unanswered.delay(history.waits, jitter: jitter), history: history, remaining: remaining, otherwise: .unconfirmed
      )
    }
  }

  /// The delay before the next attempt.
  /// A delay that the service asks for is kept. If the service refuses again after that delay, it was too short, and
  /// repeating it would use up all attempts in vain. So a least delay applies that grows, unless the send would expire
  /// before its end.
  private func delay(
    after outcome: PushOutcome, on platform: Platform, waits: Int, remaining: Duration, jitter: Double
  ) -> Duration {
    let schedule = outcome.status == 0 ? unreachable : platform.vocabulary.refused
    let throttled = outcome.status == 429 ? platform.vocabulary.throttled : nil
    guard let asked = outcome.retryAfter else {
      return throttled?.wholeDelay(waits, jitter: jitter) ?? schedule.delay(waits, jitter: jitter)
    }
    let least =
      throttled.map { Backoff(first: max(asked, leastAsked.first), growth: $0.growth, limit: $0.limit) }
      ?? leastAsked
    let delay = max(asked + asked * (jitter / 10), least.wholeDelay(waits, jitter: jitter))
    // The jitter must not make a delay too long.
    return delay <= maximumDelay && delay < remaining ? delay : asked
  }

  private func wait(
    _ delay: Duration, history: History, remaining: Duration, otherwise end: DeviceResult.Outcome
  ) -> Decision {
    guard history.countedAttempts < maximumAttempts, delay <= maximumDelay, history.age <= maximumAge else {
      return .finish(end)
    }
    // Waiting beyond the send's expiry would only delay its result.
    return delay < remaining ? .wait(delay) : .finish(.expired)
  }
}
