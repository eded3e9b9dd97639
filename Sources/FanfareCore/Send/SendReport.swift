/// The state and results of one send, for a caller who looks it up.
package struct SendReport: Hashable, Sendable {
  /// The state of the send as a whole.
  package enum State: String, CaseIterable, Sendable {
    /// Durable and held until it is due; not in the topics yet.
    case scheduled
    /// Durable, and waiting or in progress.
    case accepted
    /// Every work item has ended; see the counts.
    case settled
    /// Settled, because no device was registered for the audience.
    case noTarget
    /// Settled without a push, because its time to live had passed.
    case expired
    /// It could not be processed and is in the dead-letter topic.
    case deadLettered
    /// Cancelled before all devices had a result; see the counts.
    case cancelled
  }

  package let id: SendID
  package let hub: HubName
  package let state: State
  package let sender: String?
  /// `Audience.text`; nil if it is unknown. It does not contain handles.
  package let audience: String?
  /// Whether it may be of any size and can be controlled; see `Audience.isBroadcast`.
  package let isBroadcast: Bool
  /// When it is due; nil unless it is scheduled.
  package let sendAt: UnixTime?
  /// Whether a scheduled send is `running` or `paused`; nil unless it is scheduled.
  package let control: BroadcastControl.State?
  /// nil if only its results are known yet.
  package let acceptedAt: UnixTime?
  /// When the last work item ended; nil while one is open.
  package let settledAt: UnixTime?
  /// The number of devices per platform and outcome; preliminary while work items are open.
  package let counts: [Platform: [DeviceResult.Outcome: Int]]
  /// Those that did not get the push, by reason; preliminary likewise.
  package let failures: FailureCounts
  /// The result of each device; nil for a send to more devices than the ledger's configuration
  /// keeps.
  package let devices: [DeviceResult]?
  /// When it passed through the stages in the workers, as far as status records tell.
  package let times: SendTimes

  package init(
    id: SendID, hub: HubName, state: State, sender: String?, audience: String? = nil, isBroadcast: Bool = false,
    sendAt: UnixTime? = nil, control: BroadcastControl.State? = nil, acceptedAt: UnixTime?, settledAt: UnixTime?,
    counts: [Platform: [DeviceResult.Outcome: Int]], failures: FailureCounts = FailureCounts(),
    devices: [DeviceResult]?, times: SendTimes = SendTimes()
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
    self.failures = failures
    self.devices = devices
    self.times = times
  }
}
