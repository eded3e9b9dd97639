/// Phantom type of an attempt's id.
package enum AttemptSubject {}

/// The id of one attempt at a send whose results fill several status records.
package typealias AttemptID = Identifier<AttemptSubject>

/// What happened to one work item: the record of the status topic.
///
/// Nearly every send is one item with one record, which `send` names. The results of a large send are spread over
/// several. Should such a send be repeated after a crash, its devices, and with them the number of its parts and what
/// each holds, may be others: so `attempt` tells which parts belong together. A send has ended when all `parts` of one
/// attempt are there; records of its other attempts count for nothing.
package struct StatusRecord: Hashable, Sendable {
  package let send: SendID
  package let hub: HubName
  /// Which work item of the send: less than `parts`, 0 for a send that is one item.
  package let part: Int
  /// How many work items the send has.
  package let parts: Int
  /// To which attempt at the send the item belongs; nil for a send that is one item.
  package let attempt: AttemptID?
  /// How the item ended.
  package let state: State
  /// The user who posted the send.
  package let sender: String?
  package let audience: Audience
  package let acceptedAt: UnixTime
  package let settledAt: UnixTime
  /// What became of each device, in the order of dispatch; empty when there was none.
  package let devices: [DeviceResult]
  /// How further devices ended, which are not in `devices`: of a page of a broadcast only those are listed that did not
  /// get it.
  package let counts: OutcomeCounts
  /// The W3C `traceparent` of the request the send came with.
  package let traceparent: String?

  /// How a work item ended.
  package enum State: String, CaseIterable, Sendable {
    /// Every device has its result.
    case settled
    /// Nobody was registered for it. Not an error.
    case noTarget
    /// Its time to live had passed before anything was sent.
    case expired
    /// It could not be processed and lies in the dead-letter topic.
    case deadLettered
    /// Its broadcast was cancelled before it was through.
    case cancelled
  }

  package init(
    send: SendID, hub: HubName, part: Int = 0, parts: Int = 1, attempt: AttemptID? = nil, state: State, sender: String?,
    audience: Audience, acceptedAt: UnixTime, settledAt: UnixTime, devices: [DeviceResult],
    counts: OutcomeCounts = OutcomeCounts(),
    traceparent: String? = nil
  ) {
    self.send = send
    self.hub = hub
    self.part = part
    self.parts = parts
    self.attempt = attempt
    self.state = state
    self.sender = sender
    self.audience = audience
    self.acceptedAt = acceptedAt
    self.settledAt = settledAt
    self.devices = devices
    self.counts = counts
    self.traceparent = traceparent
  }
}
