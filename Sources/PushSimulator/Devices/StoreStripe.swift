import FanfareCore

/// One part of the store, under a lock of its own. Devices are spread over the stripes, so that the event loops seldom
/// meet.
struct StoreStripe {
  private let deviceLimit: Int
  private let notificationLimit: Int
  private let window: Int
  private var devices: [DeviceKey: DeviceRecord] = [:]
  /// Devices in the order they appeared; those before `firstKept` are gone.
  private var order: [DeviceKey] = []
  private var firstKept = 0
  private var identities: RecentIdentities
  private var accepted = [Int](repeating: 0, count: SimulatedService.allCases.count)
  /// Of those accepted, the ones whose answer was withheld.
  private var unanswered = [Int](repeating: 0, count: SimulatedService.allCases.count)
  private var duplicates = [Int](repeating: 0, count: SimulatedService.allCases.count)
  private var answers: [AnswerKey: Int] = [:]

  private struct AnswerKey: Hashable {
    let service: SimulatedService
    let label: String
  }

  /// An empty part that holds its share of the limits.
  init(deviceLimit: Int, notificationLimit: Int, window: Int) {
    self.deviceLimit = deviceLimit
    self.notificationLimit = notificationLimit
    self.window = window
    identities = RecentIdentities(window: window)
  }

  /// Counts an accepted push, and keeps it.
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

  /// Counts an accepted push or token request without keeping it.
  mutating func countAccepted(_ service: SimulatedService) {
    accepted[service.index] += 1
  }

  /// Takes it back that an accepted push or token request was answered.
  mutating func countUnanswered(_ service: SimulatedService) {
    unanswered[service.index] += 1
  }

  /// Counts an answer that accepts nothing.
  mutating func count(_ label: String, by service: SimulatedService) {
    answers[AnswerKey(service: service, label: label), default: 0] += 1
  }

  /// What is kept of a device.
  func record(of key: DeviceKey) -> DeviceRecord? { devices[key] }

  /// The devices for which `predicate` holds, with the number of notifications each has received; in no order.
  func summaries(where predicate: (DeviceKey) -> Bool) -> [(key: DeviceKey, received: Int)] {
    devices.filter { predicate($0.key) }.map { ($0.key, $0.value.received) }
  }

  /// Forgets a device.
  mutating func remove(_ key: DeviceKey) {
    guard devices.removeValue(forKey: key) != nil, let place = order[firstKept...].firstIndex(of: key) else { return }
    order.remove(at: place)
  }

  /// Adds this part's numbers.
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

  /// Forgets everything, the numbers too.
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

extension SimulatedService {
  /// A small number for tables.
  var index: Int {
    switch self {
    case .apns: 0
    case .fcm: 1
    case .wns: 2
    case .googleToken: 3
    case .microsoftToken: 4
    }
  }
}
