/// Which sends are asked for: the newest first, a page at a time.
package struct SendQuery: Hashable, Sendable {
  /// Where one send stands among all of its hub: by its acceptance, then by its id.
  package struct Position: Hashable, Sendable {
    package let acceptedAt: UnixTime
    package let send: SendID

    package init(acceptedAt: UnixTime, send: SendID) {
      self.acceptedAt = acceptedAt
      self.send = send
    }
  }

  /// The most sends in one page.
  package static let maximumLimit = 200

  package var hub: HubName
  /// Only those that stand there; nil: all.
  package var state: SendReport.State?
  /// Only those that this user posted; nil: everybody's.
  package var sender: String?
  /// Only those that this user posted, or is the recipient of; nil: everybody's.
  package var user: String?
  /// Only those before this one in the order of the pages; nil: from the newest on.
  package var after: Position?
  /// The most sends in the page, 1 to `maximumLimit`.
  package var limit: Int

  package init(
    hub: HubName, state: SendReport.State? = nil, sender: String? = nil, user: String? = nil, after: Position? = nil,
    limit: Int = 50
  ) {
    self.hub = hub
    self.state = state
    self.sender = sender
    self.user = user
    self.after = after
    self.limit = limit
  }
}
