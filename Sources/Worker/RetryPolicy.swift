package import FanfareCore

/// What an outcome means: the one place that turns a push service's answer into what the worker does next.
///
/// A pure value: from the outcome, what was tried before and how long the send may still live follows the action. Whoever wants longer waits to
/// leave the worker's memory changes `decide` and nothing else.
package struct RetryPolicy: Hashable, Sendable {
  /// Delays that grow.
  package struct Schedule: Hashable, Sendable {
    /// Before the first repetition.
    package var first: Duration
    /// Each further delay is so many times the one before.
    package var growth: Double
    /// No delay is longer.
    package var limit: Duration

    package init(first: Duration, growth: Double, limit: Duration) {
      self.first = first
      self.growth = growth
      self.limit = limit
    }

    /// The delay before the repetition of that number, from 0: between half and all of the scheduled one, so that what failed together does
    /// not come back together.
    func delay(_ number: Int, jitter: Double) -> Duration {
      var milliseconds = Double(first.milliseconds)
      let limit = Double(self.limit.milliseconds)
      for _ in 0..<number where milliseconds < limit { milliseconds *= growth }
      return .milliseconds(Int64(min(milliseconds, limit) * (0.5 + jitter / 2)))
    }
  }

  /// What was done for one device before the outcome that is judged.
  struct History: Hashable, Sendable {
    /// How often it was handed to the service, the judged attempt included.
    var attempts = 0
    /// How often it was sent again at once.
    var quickRetries = 0
    /// How often it has waited.
    var waits = 0
    /// Whether it was sent again after the credential was refused.
    var hasReauthenticated = false
    /// Whether an earlier attempt had no answer, so that the device may have it already.
    var wasUnanswered = false
    /// From the first attempt until now.
    var age = Duration.zero
  }

  /// What is to be done.
  enum Decision: Hashable, Sendable {
    /// It is over for this device.
    case finish(DeviceResult.Outcome)
    /// Send again at once.
    case again
    /// Send again after that time.
    case wait(Duration)
    /// The sender cannot work: stop it, and keep this push until it can.
    case hold
  }

  /// How often a push is repeated at once when the service certainly has not seen it; then it waits like any other.
  package var quickRetries = 3
  /// The most times one push is handed to a service, whatever happens.
  package var maximumAttempts = 8
  /// The longest single wait in a worker's memory. A service that asks for more is not disobeyed: the push is given up.
  package var maximumDelay = Duration.seconds(60 * 60)
  /// How long after the first attempt a push may still begin to wait.
  package var maximumAge = Duration.seconds(60 * 60)
  /// How often a push without an answer is repeated.
  package var unansweredRetries = 3
  /// The delays of a push without an answer.
  package var unanswered = Schedule(first: .seconds(2), growth: 2, limit: .seconds(30))
  /// The delays where the service names none. Apple asks for 15 minutes after an error of its own, which is reached in three steps; Google
  /// documents 10 s doubling for FCM; WNS throttles channels for minutes.
  package var refused: [Platform: Schedule] = [
    .apns: Schedule(first: .seconds(30), growth: 5, limit: .seconds(15 * 60)),
    .fcm: Schedule(first: .seconds(10), growth: 2, limit: .seconds(10 * 60)),
    .wns: Schedule(first: .seconds(10 * 60), growth: 2, limit: .seconds(60 * 60)),
  ]
  /// The delays of a platform that `refused` does not name.
  package var refusedElsewhere = Schedule(first: .seconds(30), growth: 2, limit: .seconds(15 * 60))

  package init() {}

  /// The action for an outcome. `jitter` is uniform in 0..<1; `remaining` is the time until the send expires.
  func decide(_ outcome: PushOutcome, on platform: Platform, history: History, remaining: Duration, jitter: Double) -> Decision {
    switch outcome.verdict {
    case .accepted: return .finish(.delivered)
    case .rejected, .malformed: return .finish(.rejected)
    case .deviceGone: return .finish(.deviceGone)
    case .configurationError: return .hold
    case .reauthenticate:
      // The sender has had its chance to get a new credential; a second refusal is the operator's to solve.
      return history.hasReauthenticated ? .hold : .again
    case .retryHere where history.quickRetries < quickRetries && history.attempts < maximumAttempts: return .again
    case .retryHere, .retryLater:
      let schedule = refused[platform] ?? refusedElsewhere
      let delay = outcome.retryAfter.map { $0 + $0 * (jitter / 10) } ?? schedule.delay(history.waits, jitter: jitter)
      return wait(delay, history: history, remaining: remaining, otherwise: history.wasUnanswered ? .unconfirmed : .failed)
    case .unknown:
      guard history.waits < unansweredRetries else { return .finish(.unconfirmed) }
      return wait(
        unanswered.delay(history.waits, jitter: jitter), history: history, remaining: remaining, otherwise: .unconfirmed)
    }
  }

  private func wait(
    _ delay: Duration, history: History, remaining: Duration, otherwise end: DeviceResult.Outcome
  ) -> Decision {
    guard history.attempts < maximumAttempts, delay <= maximumDelay, history.age <= maximumAge else { return .finish(end) }
    // Waiting past the end of the send's life would only keep its result back.
    return delay < remaining ? .wait(delay) : .finish(.expired)
  }
}

extension Duration {
  /// Whole milliseconds, rounded down; saturates.
  var milliseconds: Int64 {
    let (seconds, attoseconds) = components
    let (product, overflow) = seconds.multipliedReportingOverflow(by: 1000)
    return overflow ? (seconds > 0 ? .max : .min) : product + attoseconds / 1_000_000_000_000_000
  }
}
