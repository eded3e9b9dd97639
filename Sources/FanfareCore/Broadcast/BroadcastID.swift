/// Names a broadcast: a send within its hub.
package struct BroadcastID: Hashable, Sendable {
  package let hub: HubName
  /// The send's id, as its caller knows it; of a replay `SendRequest.identity`: it has a plan and finished pages of its
  /// own, and whoever steers the send does not steer it.
  package let send: SendID

  package init(hub: HubName, send: SendID) {
    self.hub = hub
    self.send = send
  }
}
