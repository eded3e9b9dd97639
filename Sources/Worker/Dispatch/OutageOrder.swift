import FanfareCore

/// Which pushes an outage of their service has kept from their devices: a younger one of the same device is not sent before they are over.
///
/// Normally there are none, and nothing is to be paid for. A push that is not heard of in time, because another worker has it by now, holds nobody up any
/// more; and of more pushes than there is room for the order is not kept. A pure value.
struct OutageOrder: Sendable {
  private struct Entry: Sendable {
    /// The send's, which no two sends share.
    let id: SendID
    let acceptedAt: UnixTime
    /// Uptime at which it is to be sent again.
    var due: Int64
  }

  /// How long after its time, in milliseconds, a push that was put off is still waited for.
  private static let grace: Int64 = 60_000
  private let capacity: Int
  private var devices: [RegistrationID: [Entry]] = [:]
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

  /// The push is not to be sent before `due`, or wherever it waits until then. One that is remembered has another time from now on.
  mutating func remember(_ id: SendID, acceptedAt: UnixTime, to device: RegistrationID, due: Int64) {
    guard !delay(id, to: device, due: due), !isFull else { return }
    devices[device, default: []].append(Entry(id: id, acceptedAt: acceptedAt, due: due))
    count += 1
  }

  /// Gives a push that is remembered another time. Returns whether it is.
  @discardableResult
  mutating func delay(_ id: SendID, to device: RegistrationID, due: Int64) -> Bool {
    guard let index = devices[device]?.firstIndex(where: { $0.id == id }) else { return false }
    devices[device]?[index].due = due
    return true
  }

  /// The push is over, or waits for a reason of its own.
  mutating func forget(_ id: SendID, to device: RegistrationID) {
    guard let index = devices[device]?.firstIndex(where: { $0.id == id }) else { return }
    devices[device]?.remove(at: index)
    count -= 1
    if devices[device]?.isEmpty == true { devices[device] = nil }
  }

  /// Whether another push must come to the device before that one: of a send accepted earlier, or in the same moment and remembered earlier.
  func hasOlder(than id: SendID, acceptedAt: UnixTime, to device: RegistrationID, at uptime: Int64) -> Bool {
    guard let entries = devices[device] else { return false }
    let own = entries.firstIndex { $0.id == id } ?? entries.count
    return entries.enumerated().contains { index, entry in
      (entry.acceptedAt, index) < (acceptedAt, own) && uptime <= entry.due + Self.grace
    }
  }

  /// Forgets what nobody waits for any more; looks only now and then, as it looks at everything.
  mutating func forgetOverdue(at uptime: Int64) {
    guard !isEmpty, uptime >= lookDue else { return }
    lookDue = uptime + Self.grace / 4
    devices = devices.compactMapValues { entries in
      let rest = entries.filter { uptime <= $0.due + Self.grace }
      return rest.isEmpty ? nil : rest
    }
    count = devices.values.reduce(0) { $0 + $1.count }
  }
}
