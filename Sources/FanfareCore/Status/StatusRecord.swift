/// What happened to one work item: the record of the status topic. One work item has one record, however often it is written: the pair of
/// `send` and `part` names it.
package struct StatusRecord: Hashable, Sendable {
  package let send: SendID
  package let hub: HubName
  /// Which work item of the send: 0 for a send that is one item.
  package let part: Int
  /// How the item ended.
  package let state: State
  /// The user who posted the send.
  package let sender: String?
  package let audience: Audience
  package let acceptedAt: UnixTime
  package let settledAt: UnixTime
  /// What became of each device, in the order of dispatch; empty when there was none.
  package let devices: [DeviceResult]
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
  }

  package init(
    send: SendID, hub: HubName, part: Int = 0, state: State, sender: String?, audience: Audience, acceptedAt: UnixTime,
    settledAt: UnixTime, devices: [DeviceResult], traceparent: String? = nil
  ) {
    self.send = send
    self.hub = hub
    self.part = part
    self.state = state
    self.sender = sender
    self.audience = audience
    self.acceptedAt = acceptedAt
    self.settledAt = settledAt
    self.devices = devices
    self.traceparent = traceparent
  }
}
