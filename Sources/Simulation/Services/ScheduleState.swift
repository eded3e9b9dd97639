import FanfareCore
import Registry

/// The registry's table of scheduled sends. Quotas of their senders are not simulated.
struct ScheduleState {
  private struct Key: Hashable {
    let hub: HubName
    let id: SendID
  }

  private struct Row {
    let send: SendRequest
    let scheduledAt: UnixTime
    var state: ScheduledSend.State
    /// When it is due, or the lease on it ends.
    var readyAt: UnixTime
    var lease: LeaseID?

    /// As those see it who do not take it.
    var scheduled: ScheduledSend {
      ScheduledSend(send: send, scheduledAt: scheduledAt, state: state == .held && lease != nil ? .fired : state)
    }
  }

  private var rows: [Key: Row] = [:]

  mutating func hold(_ sends: [ScheduledSend]) {
    for held in sends where rows[key(held)] == nil {
      rows[key(held)] = Row(
        send: held.send, scheduledAt: held.scheduledAt, state: held.state, readyAt: held.due, lease: nil)
    }
  }

  var nextDue: UnixTime? { rows.values.lazy.filter { $0.state == .held }.map(\.readyAt).min() }

  mutating func takeDue(_ limit: Int, for lease: LeaseID, until end: UnixTime, at now: UnixTime) -> [ScheduledSend] {
    let due = rows.filter { $0.value.state == .held && $0.value.readyAt <= now }
      .sorted { ($0.value.readyAt, $0.key.id) < ($1.value.readyAt, $1.key.id) }.prefix(limit)
    return due.map { key, row in
      rows[key]?.readyAt = end
      rows[key]?.lease = lease
      return ScheduledSend(
        send: row.send, scheduledAt: row.scheduledAt, state: row.state, mayBeEnqueued: row.lease != nil)
    }
  }

  mutating func finish(_ sends: [ScheduledSend], of lease: LeaseID) {
    for held in sends where isLeased(held, by: lease) { rows[key(held)]?.state = .fired }
  }

  mutating func release(_ sends: [ScheduledSend], of lease: LeaseID, until moment: UnixTime) {
    for held in sends where isLeased(held, by: lease) {
      rows[key(held)]?.readyAt = moment
      if !held.mayBeEnqueued { rows[key(held)]?.lease = nil }
    }
  }

  mutating func control(_ send: SendID, hub: HubName, to state: ScheduledSend.State) -> ScheduledSend? {
    let key = Key(hub: hub, id: send)
    if let row = rows[key], row.lease == nil, row.state == .held || row.state == .paused { rows[key]?.state = state }
    return scheduled(send, hub: hub)
  }

  func scheduled(_ send: SendID, hub: HubName) -> ScheduledSend? { rows[Key(hub: hub, id: send)]?.scheduled }

  func waiting(_ query: SendQuery) -> [ScheduledSend] {
    let user = query.user.map { Audience.user($0).text }
    let found = rows.values.filter { row in
      guard row.send.hub == query.hub, row.lease == nil, row.state == .held || row.state == .paused,
        (row.scheduledAt, row.send.id) < (query.start.acceptedAt, query.start.send),
        query.from.map({ $0 <= row.scheduledAt }) ?? true
      else { return false }
      let (isSender, isUser) = (row.send.sender == query.sender, row.send.audience.text == user)
      switch (query.sender, query.user) {
      case (nil, nil): return true
      case (_?, nil): return isSender
      case (nil, let name?): return isUser || row.send.sender == name
      case (let sender?, let name?) where sender == name: return isSender
      case (_?, _?): return isSender && isUser
      }
    }
    let newest = found.sorted { ($0.scheduledAt, $0.send.id) > ($1.scheduledAt, $1.send.id) }
    return newest.prefix(query.limit).map(\.scheduled)
  }

  /// The lease on a send that is held.
  func lease(of send: SendID, hub: HubName) -> LeaseID? { rows[Key(hub: hub, id: send)]?.lease }

  private func key(_ held: ScheduledSend) -> Key { Key(hub: held.send.hub, id: held.send.id) }

  private func isLeased(_ held: ScheduledSend, by lease: LeaseID) -> Bool {
    rows[key(held)].map { $0.state == .held && $0.lease == lease } ?? false
  }
}
