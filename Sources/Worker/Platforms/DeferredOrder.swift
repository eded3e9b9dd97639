import DequeModule
import FanfareCore

/// The order of the pushes that an outage delays: a younger push to a device is sent only after the
/// older ones have ended, unless it would expire.
///
/// Normally it is empty and costs nothing. A push that does not return in time, because another worker has it by now,
/// stops delaying others. Beyond its capacity the order is not kept.
///
/// Invariants: `count` is the number of entries; each device has at least one, in the order of acceptance.
struct DeferredOrder: Sendable {
  fileprivate struct Entry: Sendable {
    /// The send's id.
    let id: SendID
    let acceptedAt: UnixTime
    /// Uptime at which it is to be sent again.
    var due: Int64
    /// The push, if it waits in memory for the pushes before it.
    var waiting: Ticket?
  }

  /// A push to a device as a key of the order.
  struct Push: Sendable {
    let id: SendID
    let acceptedAt: UnixTime
    let device: RegistrationID
  }

  /// A push that goes before another one to its device.
  struct Before: Equatable, Sendable {
    /// Uptime at which it is to be sent again.
    let due: Int64
    /// Whether it is in memory, or due.
    let isHere: Bool
  }

  /// How long others wait for a deferred push after its due time, in milliseconds.
  private static let grace: Int64 = 60_000
  private let capacity: Int
  /// By device, in the order of acceptance; with equal times in the order of remembering.
  private var devices: [RegistrationID: Deque<Entry>] = [:]
  private var lookDue: Int64 = 0
  /// How many pushes are remembered.
  private(set) var count = 0

  /// Remembers at most `capacity` pushes.
  init(capacity: Int) {
    self.capacity = capacity
  }

  /// Whether the order of further pushes is not kept.
  var isFull: Bool { count >= capacity }
  /// Whether no push has to wait for another.
  var isEmpty: Bool { count == 0 }

  /// Remembers that the push is not sent before `due`, or changes its due time.
  /// `forget` or `forgetOverdue` returns a push that is `waiting` in memory as soon as no push precedes it. Returns
  /// whether the push is remembered.
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

  /// Changes the due time of a remembered push. Returns whether it is remembered.
  @discardableResult
  mutating func delay(
    _ id: SendID, acceptedAt: UnixTime, to device: RegistrationID, due: Int64, waiting: Ticket? = nil
  ) -> Bool {
    guard let place = place(of: id, acceptedAt: acceptedAt, to: device) else { return false }
    devices[device]?[place].due = due
    devices[device]?[place].waiting = waiting
    return true
  }

  /// Forgets a push that ended or waits for its own reason.
  /// Returns the waiting push whose turn it is now.
  mutating func forget(_ id: SendID, acceptedAt: UnixTime, to device: RegistrationID, at uptime: Int64) -> Ticket? {
    guard let place = place(of: id, acceptedAt: acceptedAt, to: device) else { return nil }
    devices[device]?.remove(at: place)
    count -= 1
    if devices[device]?.isEmpty == true { devices[device] = nil }
    return wakeNext(of: device, at: uptime)
  }

  /// The nearest push before this one, remembered or not; nil: there is none. Before it are the pushes of sends
  /// accepted earlier, or in the same moment and remembered earlier.
  func before(_ id: SendID, acceptedAt: UnixTime, to device: RegistrationID, at uptime: Int64) -> Before? {
    guard let entries = devices[device] else { return nil }
    let place =
      place(of: id, acceptedAt: acceptedAt, to: device) ?? entries.firstIndex(after: acceptedAt, orAt: false)
    return entries[..<place].last { uptime <= $0.due + Self.grace }.map { entry in
      Before(due: entry.due, isHere: entry.waiting != nil || entry.due <= uptime)
    }
  }

  /// Forgets overdue pushes.
  /// Looks at every entry, so only every 15 seconds. Returns the waiting pushes whose turn it is now.
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

  /// Takes the pushes that wait in memory: they must wait elsewhere.
  mutating func takeWaiting() -> [Ticket] {
    var tickets: [Ticket] = []
    for place in devices.values.indices {
      for index in devices.values[place].indices {
        guard let ticket = devices.values[place][index].waiting else { continue }
        tickets.append(ticket)
        devices.values[place][index].waiting = nil
      }
    }
    return tickets
  }

  func checkInvariants() -> [String] {
    var violations: [String] = []
    let entries = devices.values.reduce(0) { $0 + $1.count }
    if entries != count { violations.append("\(count) deferred pushes counted, \(entries) found") }
    for entries in devices.values {
      let isSorted = zip(entries, entries.dropFirst()).allSatisfy { $0.acceptedAt <= $1.acceptedAt }
      if entries.isEmpty || !isSorted { violations.append("a device's deferred pushes are out of order") }
    }
    return violations
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

extension Deque<DeferredOrder.Entry> {
  /// The first entry accepted after that moment; with `orAt`, also in it.
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
