/// Names a broadcast: a send within its hub.
package struct BroadcastID: Hashable, Sendable {
  package let hub: HubName
  /// The send's id, as its caller knows it. A broadcast that is replayed is the same broadcast only while the first is unfinished: its plan, and
  /// with it the account of finished pages, is that of `SendRequest.identity`.
  package let send: SendID

  package init(hub: HubName, send: SendID) {
    self.hub = hub
    self.send = send
  }
}
