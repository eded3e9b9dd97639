/// What a push service's answer, or its silence, means for one push. A value, not an error of the process; it is an
/// `Error` only so that rendering can throw it.
package struct PushOutcome: Error, Hashable, Sendable {
  /// What is to be done. The worker alone decides how.
  package enum Verdict: String, CaseIterable, Sendable {
    /// The service took it. This never means that a person has seen it.
    case accepted
    /// This message is bad for this device, for good; the device is not.
    case rejected
    /// The service no longer knows the device (see `since`); stop using the handle.
    case deviceGone
    /// May be sent again at once with the same credentials, on another stream or connection.
    case retryHere
    /// May be sent again after `retryAfter`, or after the worker's own delay where that is nil.
    case retryLater
    /// The credential was refused; the sender is getting a new one. Send again once.
    case reauthenticate
    /// The operator's mistake (key, topic, project, certificate): stop this sender, raise an alarm, keep tokens and
    /// messages.
    case configurationError
    /// Our own request was malformed: raise an alarm, do not send again.
    case malformed
    /// Nobody knows whether the service took it: no answer within the deadline, or the connection broke first.
    case unknown
  }

  package let verdict: Verdict
  /// The service's own word where it has one (`BadDeviceToken`, `UNREGISTERED`, `channelthrottled`), else ours. From a
  /// fixed vocabulary: it becomes a metric label, and never contains anything of the message or the device.
  package let reason: String
  /// The HTTP status; 0 where there was no answer.
  package let status: Int
  /// How long the service asks to be left alone, for `.retryLater`.
  package let retryAfter: Duration?
  /// Since when the service holds the device to be gone, for `.deviceGone`.
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
