/// Looks up sends.
/// Called by the front end and implemented by the ledger's store, which may lag behind the topics.
package protocol SendHistory: Sendable {
  /// The report of a send; nil if it is unknown. Throws if the store cannot be read now.
  func report(of send: SendID, hub: HubName) async throws -> SendReport?

  /// One page of the sends that match the query. Throws if the store cannot be read now.
  func list(_ query: SendQuery) async throws -> SendPage

  /// Throws if the store cannot be read now.
  func check() async throws
}

/// A query for sends, answered page by page, the newest first.
package struct SendQuery: Hashable, Sendable {
  /// The position of a send in the order of its hub: by time of acceptance, then by id.
  package struct Position: Hashable, Sendable {
    package let acceptedAt: UnixTime
    package let send: SendID

    package init(acceptedAt: UnixTime, send: SendID) {
      self.acceptedAt = acceptedAt
      self.send = send
    }
  }

  /// Whether the audience of a send may be of any size.
  package enum Kind: String, CaseIterable, Sendable {
    /// To everyone, a tag or an expression; see `SendReport.isBroadcast`.
    case broadcast
    /// To one user or one device.
    case single
  }

  /// The highest limit.
  package static let maximumLimit = 200

  package var hub: HubName
  /// Only sends in this state; nil: all.
  package var state: SendReport.State?
  /// Only sends of this kind; nil: all.
  package var kind: Kind?
  /// Only sends that this user posted; nil: all.
  package var sender: String?
  /// Only sends that this user posted or receives; nil: all.
  package var user: String?
  /// Only sends accepted at this moment or later; nil: from the oldest on.
  package var from: UnixTime?
  /// Only sends accepted before this moment; nil: up to the newest.
  package var until: UnixTime?
  /// Only sends older than this position; nil: from the newest on.
  package var after: Position?
  /// The most sends in the page, 1 to `maximumLimit`.
  package var limit: Int

  package init(
    hub: HubName, state: SendReport.State? = nil, sender: String? = nil, user: String? = nil, from: UnixTime? = nil,
    until: UnixTime? = nil, after: Position? = nil, limit: Int = 50
  ) {
    self.hub = hub
    self.state = state
    self.sender = sender
    self.user = user
    self.from = from
    self.until = until
    self.after = after
    self.limit = limit
  }
}

extension SendQuery {
  /// The position behind which the page begins, of `after` and `until` the older one.
  package var start: Position {
    // No id is less than this one, so that a send of the moment itself does not come.
    let bound = until.map { Position(acceptedAt: $0, send: SendID(high: 0, low: 0)) }
    switch (after, bound) {
    case (let after?, let bound?): return after.acceptedAt < bound.acceptedAt ? after : bound
    case (let start?, nil), (nil, let start?): return start
    case (nil, nil): return Position(acceptedAt: UnixTime(milliseconds: .max), send: SendID(high: .max, low: .max))
    }
  }
}

/// One page of the answer to a `SendQuery`.
package struct SendPage: Hashable, Sendable {
  /// The sends, the newest first, without `devices`.
  package let sends: [SendReport]
  /// Where the next page begins; nil on the last page.
  ///
  /// A page may have fewer sends than the limit, or none, before the last one: a store examines a bounded number of
  /// sends per page.
  package let next: SendQuery.Position?

  package init(sends: [SendReport], next: SendQuery.Position?) {
    self.sends = sends
    self.next = next
  }
}
