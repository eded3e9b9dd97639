import DequeModule
import FanfareCore

/// Which pushes an outage of their service has kept from their devices: a younger one of the same device is not sent
/// before they are over, unless it would expire.
///
/// Normally there are none, and nothing is to be paid for. A push that is not heard of in time, because another worker
/// has it by now, holds nobody up any more; and of more pushes than there is room for the order is not kept. A pure
/// value.
struct OutageOrder: Sendable {
  fileprivate struct Entry: Sendable {
    /// The send's, which no two sends share.
    let id: SendID
    let acceptedAt: UnixTime
    /// Uptime at which it is to be sent again.
    var due: Int64
    /// Of a push that waits in memory until none before it is left.
    var waiting: Ticket?
  }

  /// Where a push stands that is put off: among those of its device that are remembered.
  struct Place: Sendable {
    /// Uptime at which the nearest of those before it that are away is to be sent again; nil where none is.
    let dueBefore: Int64?
    /// How many of the device are remembered, with this one.
    let count: Int
    /// Whether it is one of them already.
    let isRemembered: Bool
  }

  /// How long after its time, in milliseconds, a push that was put off is still waited for.
  private static let grace: Int64 = 60_000
  private let capacity: Int
  /// Of each device in the order of acceptance; what was accepted in the same moment, in the order in which it was
  /// remembered.
  private var devices: [RegistrationID: Deque<Entry>] = [:]
  private var lookDue: Int64 = 0
  /// How many pushes are remembered.
  private(set) var count = 0

  /// Remembers at most so many pushes.
  init(capacity: Int) {
    self.capacity = capacity
  }

  /// Whether of further pushes the order is not kept.
  var isFull: Bool { count >= capacity }
  /// Whether nobody has to wait for anybody.
  var isEmpty: Bool { count == 0 }
  /// How many devices pushes are remembered of.
  var deviceCount: Int { devices.count }

  /// The push is not to be sent before `due`, or wherever it waits until then; one that is `waiting` is named as soon
  /// as none before it is left. One that is remembered has another time from now on. Returns whether it is remembered.
  @discardableResult
  mutating func remember(
    _ id: SendID, acceptedAt: UnixTime, to device: RegistrationID, due: Int64, waiting: Ticket? = nil
  ) -> Bool {
    if delay(id, acceptedAt: acceptedAt, to: device, due: due, waiting: waiting) { return true }
    guard !isFull else { return false }
    let entry = Entry(id: id, acceptedAt: acceptedAt, due: due, waiting: waiting)
    let place = devices[device]?.firstIndex(after: acceptedAt, orAt: false) ?? 0
    devices[device, default: []].insert(entry, at: place)
    count += 1
    return true
  }

  /// Gives a push that is remembered another time. Returns whether it is.
  @discardableResult
  mutating func delay(
    _ id: SendID, acceptedAt: UnixTime, to device: RegistrationID, due: Int64, waiting: Ticket? = nil
  ) -> Bool {
    guard let place = place(of: id, acceptedAt: acceptedAt, to: device) else { return false }
    devices[device]?[place].due = due
    devices[device]?[place].waiting = waiting
    return true
  }

  /// The push is over, or waits for a reason of its own. Returns the one whose turn it is now, if that waits.
  mutating func forget(_ id: SendID, acceptedAt: UnixTime, to device: RegistrationID, at uptime: Int64) -> Ticket? {
    guard let place = place(of: id, acceptedAt: acceptedAt, to: device) else { return nil }
    devices[device]?.remove(at: place)
    count -= 1
    if devices[device]?.isEmpty == true { devices[device] = nil }
    return wakeNext(of: device, at: uptime)
  }

  /// How many other pushes must come to the device before that one: of sends accepted earlier, or in the same moment
  /// and remembered earlier. Counts no further than to `limit`.
  func older(
    than id: SendID, acceptedAt: UnixTime, to device: RegistrationID, at uptime: Int64, limit: Int = .max
  ) -> Int {
    var older = 0
    for entry in devices[device] ?? [] {
      if entry.id == id || entry.acceptedAt > acceptedAt || older >= limit { break }
      if uptime <= entry.due + Self.grace { older += 1 }
    }
    return older
  }

  /// Where that push stands, remembered or not. What waits in memory or is due is not away.
  func place(_ id: SendID, acceptedAt: UnixTime, to device: RegistrationID, at uptime: Int64) -> Place {
    guard let entries = devices[device] else { return Place(dueBefore: nil, count: 1, isRemembered: false) }
    let known = place(of: id, acceptedAt: acceptedAt, to: device)
    let before = entries[..<(known ?? entries.firstIndex(after: acceptedAt, orAt: false))]
    return Place(
      dueBefore: before.last { $0.waiting == nil && $0.due > uptime }?.due,
      count: entries.count + (known == nil ? 1 : 0),
      isRemembered: known != nil)
  }

  /// Forgets what nobody waits for any more; looks only now and then, as it looks at everything. Returns those whose
  /// turn it is now, of those that wait.
  mutating func forgetOverdue(at uptime: Int64) -> [Ticket] {
    guard !isEmpty, uptime >= lookDue else { return [] }
    lookDue = uptime + Self.grace / 4
    devices = devices.compactMapValues { entries in
      let rest = entries.filter { uptime <= $0.due + Self.grace }
      return rest.isEmpty ? nil : rest
    }
    count = devices.values.reduce(0) { $0 + $1.count }
    return Array(devices.keys).compactMap { wakeNext(of: $0, at: uptime) }
  }

  /// Takes those that wait and have more than so many before them, overdue ones included: they are to wait elsewhere.
  mutating func takeWaiting(behind places: Int) -> [Ticket] {
    var tickets: [Ticket] = []
    for (device, entries) in devices {
      for (place, entry) in entries.enumerated() {
        guard place > places, let ticket = entry.waiting else { continue }
        tickets.append(ticket)
        devices[device]?[place].waiting = nil
      }
    }
    return tickets
  }

  private mutating func wakeNext(of device: RegistrationID, at uptime: Int64) -> Ticket? {
    guard let next = devices[device]?.firstIndex(where: { uptime <= $0.due + Self.grace }) else { return nil }
    defer { devices[device]?[next].waiting = nil }
    return devices[device]?[next].waiting
  }

  private func place(of id: SendID, acceptedAt: UnixTime, to device: RegistrationID) -> Int? {
    guard let entries = devices[device] else { return nil }
    return entries[entries.firstIndex(after: acceptedAt, orAt: true)...].prefix { $0.acceptedAt == acceptedAt }
      .firstIndex { $0.id == id }
  }
}

extension Deque<OutageOrder.Entry> {
  /// The first place of what was accepted after that moment, or, where `orAt`, in it.
  fileprivate func firstIndex(after acceptedAt: UnixTime, orAt: Bool) -> Int {
    var (low, high) = (0, count)
    while low < high {
      let middle = (low + high) / 2
      if self[middle].acceptedAt < acceptedAt || (!orAt && self[middle].acceptedAt == acceptedAt) {
        low = middle + 1
      } else {
        high = middle
      }
    }
    return low
  }
}
