/// What became of a send on one device, for good.
package struct DeviceResult: Hashable, Sendable {
  /// How it ended.
  package enum Outcome: String, CaseIterable, Sendable {
    /// The push service took it.
    case delivered
    /// The push service, or our check before it, refused the message for good.
    case rejected
    /// The push service no longer knows the device.
    case deviceGone
    /// The send's time to live passed while it waited to be sent again.
    case expired
    /// Given up after the permitted attempts: the service kept refusing for the moment.
    case failed
    /// Given up after the permitted attempts without ever knowing whether the service took it.
    case unconfirmed
  }

  package let registration: RegistrationID
  package let platform: Platform
  package let outcome: Outcome
  /// The last reason given; empty when delivered. From `PushOutcome.reason`'s vocabulary.
  package let reason: String
  /// The last HTTP status; 0 where there was none.
  package let status: Int
  /// How often it was handed to the service.
  package let attempts: Int

  package init(
    registration: RegistrationID, platform: Platform, outcome: Outcome, reason: String, status: Int, attempts: Int
  ) {
    self.registration = registration
    self.platform = platform
    self.outcome = outcome
    self.reason = reason
    self.status = status
    self.attempts = attempts
  }
}
