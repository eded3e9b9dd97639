/// A client of one push service for one hub.
///
/// The worker renders a send once, submits pushes in batches and receives the outcome of each.
package protocol PushSender: Sendable {
  var platform: Platform { get }

  /// Renders the send for this platform. Called once per send from the worker's task; does no I/O.
  ///
  /// If the service would reject the payload, throws the outcome that every push would have.
  func render(_ send: SendRequest) throws(PushOutcome) -> RenderedPush

  /// Accepts pushes and returns at once.
  ///
  /// `completion` is called with every ticket exactly once, in batches, on any thread, within the request timeout of
  /// the sender's configuration. After `run()` has ended, the remaining pushes are reported as `.retryLater`. The
  /// sender repeats a push by itself only if the service certainly has not received it; all other retries are the
  /// worker's decision.
  func submit(_ pushes: [Push], completion: @escaping @Sendable ([PushResult]) -> Void)

  /// Maintains connections and credentials.
  /// Returns after the task is cancelled and every submitted push is reported.
  func run() async throws

  /// Why the sender cannot work now, for readiness and alarms; nil if it can.
  var readinessProblem: String? { get }
}

/// The outcome of one push.
package struct PushResult: Sendable {
  /// The ticket of the push.
  package let ticket: UInt64
  package let outcome: PushOutcome

  package init(ticket: UInt64, outcome: PushOutcome) {
    self.ticket = ticket
    self.outcome = outcome
  }
}

/// The meaning of a push service's answer, or of a missing answer, for one push.
///
/// It is an `Error` only so that rendering can throw it.
package struct PushOutcome: Error, Hashable, Sendable {
  /// The meaning of the answer. The worker decides on the action.
  package enum Verdict: String, CaseIterable, Sendable {
    /// The service accepted it, which does not mean that the device displayed it.
    case accepted
    /// This message is permanently invalid for this device; the device is valid.
    case rejected
    /// The service no longer knows the device (see `since`). The handle must not be used any more.
    case deviceGone
    /// It may be repeated at once with the same credentials, on another stream or connection.
    case retryHere
    /// It may be repeated after `retryAfter`, or after the worker's own delay if that is nil.
    case retryLater
    /// The credential was rejected, and the sender obtains a new one. It may be repeated once.
    case reauthenticate
    /// The configuration is wrong (key, topic, project, certificate): the sender must stop, raise
    /// an alarm, and keep devices and messages.
    case configurationError
    /// Our request was malformed: it must raise an alarm and not be repeated.
    case malformed
    /// The service may have accepted it: no answer within the deadline, or the connection broke
    /// first.
    case unknown
  }

  package let verdict: Verdict
  /// The service's reason if it gives one (`BadDeviceToken`, `UNREGISTERED`, `channelthrottled`),
  /// else our own.
  ///
  /// From a fixed vocabulary, because it becomes a metric label. It contains no part of the message or the device.
  package let reason: String
  /// The HTTP status; 0 if there was no answer.
  package let status: Int
  /// The delay that the service asks for, with `.retryLater`.
  package let retryAfter: Duration?
  /// The time since which the service considers the device gone, with `.deviceGone`.
  package let since: UnixTime?

  package init(
    _ verdict: Verdict, reason: String = "", status: Int = 0, retryAfter: Duration? = nil, since: UnixTime? = nil
  ) {
    self.verdict = verdict
    self.reason = reason
    self.status = status
    self.retryAfter = retryAfter
    self.since = since
  }
}
