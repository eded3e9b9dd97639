import FanfareCore
import Synchronization

/// A part of the store with a lock of its own. Devices are spread over the stripes, so that event loops rarely contend.
struct StoreStripe {
  private let deviceLimit: Int
  private let notificationLimit: Int
  private let window: Int
  private var devices: [DeviceKey: DeviceRecord] = [:]
  /// Devices in order of appearance; those before `firstKept` have been removed.
  private var order: [DeviceKey] = []
  private var firstKept = 0
  private var identities: RecentIdentities
  private var accepted = [Int](repeating: 0, count: SimulatedService.count)
  /// Accepted pushes whose answer was withheld.
  private var unanswered = [Int](repeating: 0, count: SimulatedService.count)
  private var duplicates = [Int](repeating: 0, count: SimulatedService.count)
  private var answers: [AnswerKey: Int] = [:]

  private struct AnswerKey: Hashable {
    let service: SimulatedService
    let label: String
  }

  /// An empty stripe with its share of the limits.
  init(deviceLimit: Int, notificationLimit: Int, window: Int) {
    self.deviceLimit = deviceLimit
    self.notificationLimit = notificationLimit
    self.window = window
    identities = RecentIdentities(window: window)
  }

  mutating func accept(_ notification: ReceivedNotification) {
    let service = SimulatedService(notification.platform)
    accepted[service.index] += 1
    if let id = notification.pushID {
      var hasher = Hasher()
      hasher.combine(notification.platform)
      hasher.combine(notification.handle)
      hasher.combine(id)
      if !identities.insert(hasher.finalize()) { duplicates[service.index] += 1 }
    }
    let key = DeviceKey(platform: notification.platform, handle: notification.handle)
    if devices[key]?.append(notification, limit: notificationLimit) != nil { return }
    makeRoom()
    var record = DeviceRecord()
    record.append(notification, limit: notificationLimit)
    devices[key] = record
    order.append(key)
  }

  /// Counts without keeping anything.
  mutating func countAccepted(_ service: SimulatedService) { accepted[service.index] += 1 }

  /// Corrects the counts: an accepted push or token request got no answer.
  mutating func countUnanswered(_ service: SimulatedService) { unanswered[service.index] += 1 }

  /// Counts an answer that accepted nothing.
  mutating func count(_ label: String, by service: SimulatedService) {
    answers[AnswerKey(service: service, label: label), default: 0] += 1
  }

  func record(of key: DeviceKey) -> DeviceRecord? { devices[key] }

  /// The devices for which `predicate` holds, with their number of notifications, in no order.
  func summaries(where predicate: (DeviceKey) -> Bool) -> [(key: DeviceKey, received: Int)] {
    devices.filter { predicate($0.key) }.map { ($0.key, $0.value.received) }
  }

  mutating func remove(_ key: DeviceKey) {
    guard devices.removeValue(forKey: key) != nil, let place = order[firstKept...].firstIndex(of: key) else { return }
    order.remove(at: place)
  }

  func add(to counts: inout SimulatorCounts) {
    counts.devices += devices.count
    for service in SimulatedService.allCases {
      counts.services[service, default: .init()].accepted += accepted[service.index]
      counts.services[service, default: .init()].duplicates += duplicates[service.index]
      let answered = accepted[service.index] - unanswered[service.index]
      if answered > 0 { counts.services[service, default: .init()].answers["200", default: 0] += answered }
    }
    for (key, count) in answers {
      counts.services[key.service, default: .init()].answers[key.label, default: 0] += count
    }
  }

  /// Removes everything and resets the counts.
  mutating func reset() {
    self = StoreStripe(deviceLimit: deviceLimit, notificationLimit: notificationLimit, window: window)
  }

  private mutating func makeRoom() {
    while devices.count >= deviceLimit, firstKept < order.count {
      devices[order[firstKept]] = nil
      firstKept += 1
    }
    if firstKept > order.count / 2, firstKept > 64 {
      order.removeFirst(firstKept)
      firstKept = 0
    }
  }
}

/// The key of a device in the store.
struct DeviceKey: Hashable, Sendable, Comparable {
  let platform: Platform
  let handle: String

  /// The order in which devices are listed: by platform, then handle.
  static func < (left: Self, right: Self) -> Bool {
    left.platform == right.platform ? left.handle < right.handle : left.platform.name < right.platform.name
  }
}

/// The notifications of one device.
struct DeviceRecord {
  /// The number of notifications received, removed ones included.
  private(set) var received = 0
  /// The newest notifications; a ring buffer once it is full.
  private var ring: [ReceivedNotification] = []
  private var oldest = 0

  /// Adds a notification, and removes the oldest if there are `limit` already.
  mutating func append(_ notification: ReceivedNotification, limit: Int) {
    received += 1
    guard limit > 0 else { return }
    if ring.count < limit {
      ring.append(notification)
    } else {
      ring[oldest] = notification
      oldest = (oldest + 1) % limit
    }
  }

  /// Oldest first.
  var notifications: [ReceivedNotification] { Array(ring[oldest...] + ring[..<oldest]) }
}

/// A set of hashes that remembers at least the last `window` of them, at most twice as many.
///
/// Two generations instead of a ring, so that a lookup is one or two set probes, and forgetting is one assignment.
struct RecentIdentities {
  private let window: Int
  private var current: Set<Int> = []
  private var previous: Set<Int> = []

  init(window: Int) { self.window = max(window, 1) }

  /// Adds a hash; returns false if it was remembered already.
  mutating func insert(_ hash: Int) -> Bool {
    guard !previous.contains(hash), current.insert(hash).inserted else { return false }
    if current.count >= window {
      previous = current
      current = []
    }
    return true
  }
}

/// The readers that see each notification as it arrives.
final class NotificationObservers: Sendable {
  private let continuations = Mutex<[Int: AsyncStream<ReceivedNotification>.Continuation]>([:])
  private let nextNumber = Atomic<Int>(0)
  /// Avoids the lock while there is no reader, the usual case.
  private let hasObservers = Atomic<Bool>(false)

  var count: Int { continuations.withLock { $0.count } }

  /// A stream of the notifications from now on, which buffers the newest `limit`.
  func stream(bufferingNewest limit: Int) -> AsyncStream<ReceivedNotification> {
    let (stream, continuation) = AsyncStream.makeStream(
      of: ReceivedNotification.self, bufferingPolicy: .bufferingNewest(max(limit, 1)))
    let number = nextNumber.wrappingAdd(1, ordering: .relaxed).oldValue
    continuation.onTermination = { [weak self] _ in self?.remove(number) }
    continuations.withLock {
      $0[number] = continuation
      hasObservers.store(true, ordering: .releasing)
    }
    return stream
  }

  func notify(_ notification: ReceivedNotification) {
    guard hasObservers.load(ordering: .acquiring) else { return }
    // Outside the lock, because a stream that has ended calls `remove`.
    let current = continuations.withLock { Array($0.values) }
    for continuation in current { continuation.yield(notification) }
  }

  private func remove(_ number: Int) {
    continuations.withLock {
      $0[number] = nil
      hasObservers.store(!$0.isEmpty, ordering: .releasing)
    }
  }
}
