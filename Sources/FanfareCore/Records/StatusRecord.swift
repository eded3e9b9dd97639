/// Phantom type of a dispatch's id.
package enum DispatchSubject {}

/// The id of one dispatch of a send with several status records. The records' member is called `attempt`.
package typealias DispatchID = Identifier<DispatchSubject>

/// The result of one work item: the record of the status topic.
///
/// Nearly every send is one item with one record. The results of a large send are spread over several parts. When such
/// a send is repeated after a crash, its devices, and so the number and content of its parts, may differ: `attempt`
/// tells which parts belong together. A send has ended when all `parts` of one dispatch exist; its other dispatches are
/// ignored.
package struct StatusRecord: Hashable, Sendable {
  package let send: SendID
  package let hub: HubName
  /// The number of the work item: less than `parts`, 0 for a send with one item.
  package let part: Int
  /// The number of work items of the send.
  package let parts: Int
  /// For how many consecutive work items it stands, from `part` on. More than 1 only for pages that ended without being
  /// pushed, which have no results.
  package let span: Int
  /// The dispatch that the item belongs to; nil for a send with one item.
  package let attempt: DispatchID?
  package let state: State
  /// The user who posted the send.
  package let sender: String?
  package let audience: Audience
  package let acceptedAt: UnixTime
  package let settledAt: UnixTime
  /// The result of each device, in the order of dispatch.
  package let devices: [DeviceResult]
  /// The results of devices that `devices` does not list.
  /// A page of a broadcast lists only the devices that failed.
  package let counts: OutcomeCounts
  /// The W3C `traceparent` of the caller's request.
  package let traceparent: String?
  /// When the item passed through its stages. An item that was deferred has the first times of all its rounds.
  package let times: SendTimes
  /// The W3C `tracestate` that came with it.
  package internal(set) var tracestate: String?

  /// How a work item ended.
  package enum State: String, CaseIterable, Sendable {
    /// Every device has its result.
    case settled
    /// The audience had no registered device. Not an error.
    case noTarget
    /// Its time to live had passed before the first push.
    case expired
    /// It could not be processed and is in the dead-letter topic.
    case deadLettered
    /// Its broadcast was cancelled before all devices had a result.
    case cancelled
  }

  package init(
    send: SendID, hub: HubName, part: Int = 0, parts: Int = 1, span: Int = 1, attempt: DispatchID? = nil, state: State,
    sender: String?,
    audience: Audience, acceptedAt: UnixTime, settledAt: UnixTime, devices: [DeviceResult],
    counts: OutcomeCounts = OutcomeCounts(), traceparent: String? = nil, tracestate: String? = nil,
    times: SendTimes = SendTimes()
  ) {
    self.send = send
    self.hub = hub
    self.part = part
    self.parts = parts
    self.span = span
    self.attempt = attempt
    self.state = state
    self.sender = sender
    self.audience = audience
    self.acceptedAt = acceptedAt
    self.settledAt = settledAt
    self.devices = devices
    self.counts = counts
    self.traceparent = traceparent
    self.times = times
    self.tracestate = tracestate
  }
}

/// The final result of a send on one device.
package struct DeviceResult: Hashable, Sendable {
  /// The kinds of results.
  package enum Outcome: String, CaseIterable, Sendable {
    /// The push service accepted it.
    case delivered
    /// The push service, or our check before it, rejected the message permanently.
    case rejected
    /// The push service no longer knows the device.
    case deviceGone
    /// The send's time to live passed while it waited for a retry.
    case expired
    /// Given up after the permitted attempts: the service kept asking to retry later.
    case failed
    /// Given up after the permitted attempts; the service may have accepted one of them.
    case unconfirmed
  }

  package let registration: RegistrationID
  package let platform: Platform
  package let outcome: Outcome
  /// The last reason, from the vocabulary of `PushOutcome.reason`; empty when delivered.
  package let reason: String
  /// The last HTTP status; 0 if there was no answer.
  package let status: Int
  /// The number of attempts.
  package let attempts: Int
  /// When its first attempt was made, not counting those while the service was unavailable. nil if it is unknown; so
  /// are the times of the only device of a record, which has those of the record, and of the devices of a broadcast's
  /// page.
  package var pushedAt: UnixTime?
  /// When the push service last answered; nil as above.
  package var answeredAt: UnixTime?

  package init(
    registration: RegistrationID, platform: Platform, outcome: Outcome, reason: String, status: Int, attempts: Int,
    pushedAt: UnixTime? = nil, answeredAt: UnixTime? = nil
  ) {
    self.registration = registration
    self.platform = platform
    self.outcome = outcome
    self.reason = reason
    self.status = status
    self.attempts = attempts
    self.pushedAt = pushedAt
    self.answeredAt = answeredAt
  }
}
