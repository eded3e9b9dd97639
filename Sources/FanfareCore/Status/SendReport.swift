/// All that is known of one send: what a caller who looks it up is told.
package struct SendReport: Hashable, Sendable {
  /// Where the send stands.
  package enum State: String, CaseIterable, Sendable {
    /// Durable, and held until its time comes; no part of the topics yet.
    case scheduled
    /// Durable, and waiting or being worked on.
    case accepted
    /// Every work item of it has ended; see the counts.
    case settled
    /// Settled without a device to go to.
    case noTarget
    /// Settled without anything sent, because its time to live had passed.
    case expired
    /// It could not be processed and lies in the dead-letter topic.
    case deadLettered
    /// Cancelled before every device had it; see the counts.
    case cancelled
  }

  package let id: SendID
  package let hub: HubName
  package let state: State
  package let sender: String?
  /// To whom, as text for people; nil where that is not known. A device's handle is no part of it.
  package let audience: String?
  /// Whether it may be of any size, and so is steered; see `Audience.isBroadcast`.
  package let isBroadcast: Bool
  /// When it is due; nil unless it is scheduled.
  package let sendAt: UnixTime?
  /// What is wanted of it while it is scheduled: `running` or `paused`; nil unless it is.
  package let control: BroadcastControl.State?
  /// nil when only the end of it is known yet.
  package let acceptedAt: UnixTime?
  /// When the last work item ended; nil while any is open.
  package let settledAt: UnixTime?
  /// How many devices ended how, per platform: so far, while work items are open.
  package let counts: [Platform: [DeviceResult.Outcome: Int]]
  /// Each device's result, for sends to at most as many devices as the ledger keeps (see its configuration); nil for
  /// larger ones.
  package let devices: [DeviceResult]?

  package init(
    id: SendID, hub: HubName, state: State, sender: String?, audience: String? = nil, isBroadcast: Bool = false,
    sendAt: UnixTime? = nil, control: BroadcastControl.State? = nil, acceptedAt: UnixTime?, settledAt: UnixTime?,
    counts: [Platform: [DeviceResult.Outcome: Int]],
    devices: [DeviceResult]?
  ) {
    self.id = id
    self.hub = hub
    self.state = state
    self.sender = sender
    self.audience = audience
    self.isBroadcast = isBroadcast
    self.sendAt = sendAt
    self.control = control
    self.acceptedAt = acceptedAt
    self.settledAt = settledAt
    self.counts = counts
    self.devices = devices
  }
}

/// Where sends can be looked up. Asked by the front end, answered by the ledger's store; may trail the topics by the
/// ledger's lag.
package protocol SendHistory: Sendable {
  /// What is known of the send; nil when nothing is. Throws when the store cannot be read now.
  func report(of send: SendID, hub: HubName) async throws -> SendReport?

  /// A page of the sends that were asked for. Throws when the store cannot be read now.
  func list(_ query: SendQuery) async throws -> SendPage

  /// Throws when the store cannot be read now.
  func check() async throws
}
