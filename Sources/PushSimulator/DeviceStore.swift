package import FanfareCore
import Synchronization

/// The notifications that arrived on the devices, and counts of all answers.
///
/// Keeps a limited number of devices, and the newest notifications of each; the counts stay exact. All methods may be
/// called from any thread.
package final class DeviceStore: Sendable {
  private let stripes: [Stripe]
  private let keepsNotifications: Bool
  private let observers = NotificationObservers()

  private final class Stripe: Sendable {
    let state: Mutex<StoreStripe>

    init(_ state: StoreStripe) { self.state = Mutex(state) }
  }

  /// An empty store with the configuration's limits.
  init(_ configuration: SimulatorConfiguration) {
    keepsNotifications = configuration.recordsPushes
    // A small store has one stripe, so that its limits are exact.
    let count = configuration.maximumDevices >= 1000 ? 64 : 1
    stripes = (0..<count).map { _ in
      Stripe(
        StoreStripe(
          deviceLimit: max(1, configuration.maximumDevices / count),
          notificationLimit: configuration.notificationsPerDevice, window: configuration.duplicateWindow / count))
    }
  }

  /// A device with the number of notifications it has received.
  package struct Device: Hashable, Sendable {
    package let platform: Platform
    package let handle: String
    package let received: Int
  }

  /// The notifications kept for a device, oldest first. `handle` may be in the platform's own form: an APNs token in
  /// any case, a whole WNS channel URI.
  package func notifications(_ platform: Platform, _ handle: String) -> [ReceivedNotification] {
    record(platform, handle)?.notifications ?? []
  }

  /// The number of notifications a device has received since it has been in the store; nil for an unknown device.
  package func received(_ platform: Platform, _ handle: String) -> Int? { record(platform, handle)?.received }

  /// Up to `limit` devices of one platform or all, ordered by platform and handle, after the given one.
  package func devices(platform: Platform? = nil, after: (Platform, String)? = nil, limit: Int) -> [Device] {
    let start = after.map { DeviceKey(platform: $0.0, handle: $0.1) }
    let found = stripes.flatMap { stripe in
      stripe.state.withLock { state in
        state.summaries { key in (platform == nil || key.platform == platform) && start.map { $0 < key } ?? true }
      }
    }
    return found.sorted { $0.key < $1.key }.prefix(max(limit, 0)).map {
      Device(platform: $0.key.platform, handle: $0.key.handle, received: $0.received)
    }
  }

  /// All counts. Each is exact, but a push that arrives during the call may be in some and not in others.
  package func counts() -> SimulatorCounts {
    var counts = SimulatorCounts()
    for stripe in stripes { stripe.state.withLock { $0.add(to: &counts) } }
    return counts
  }

  /// Removes a device; returns false if it is unknown.
  package func remove(_ platform: Platform, _ handle: String) -> Bool {
    let key = DeviceKey(platform: platform, handle: Self.normalized(handle, platform: platform))
    return stripe(of: key.handle).state.withLock { state in
      guard state.record(of: key) != nil else { return false }
      state.remove(key)
      return true
    }
  }

  /// Removes all devices and resets all counts.
  package func reset() {
    for stripe in stripes { stripe.state.withLock { $0.reset() } }
  }

  /// The notifications accepted from now on. A slow reader loses the oldest unread ones, and never delays a push.
  package func events(bufferingNewest limit: Int = 10_000) -> AsyncStream<ReceivedNotification> {
    observers.stream(bufferingNewest: limit)
  }

  /// Whether another reader over HTTP may be admitted.
  var hasRoomForObserver: Bool { observers.count < 100 }

  /// Counts an accepted push and keeps it.
  package func accept(_ notification: ReceivedNotification) {
    stripe(of: notification.handle).state.withLock { state in
      if keepsNotifications {
        state.accept(notification)
      } else {
        state.countAccepted(SimulatedService(notification.platform))
      }
    }
    observers.notify(notification)
  }

  /// Counts an issued token.
  func countAccepted(_ service: SimulatedService) {
    stripe(of: "").state.withLock { $0.countAccepted(service) }
  }

  /// Corrects the counts: the last accepted push for the handle (the empty one for a token) got no answer.
  func countUnanswered(_ service: SimulatedService, handle: String) {
    stripe(of: handle).state.withLock { $0.countUnanswered(service) }
  }

  /// Counts an answer that accepted nothing.
  func count(_ label: String, by service: SimulatedService, handle: String = "") {
    stripe(of: handle).state.withLock { $0.count(label, by: service) }
  }

  /// The form in which the store compares handles.
  static func normalized(_ handle: String, platform: Platform) -> String {
    SimulatedPushServices.service(of: platform)?.normalized(handle: handle) ?? handle
  }

  private func record(_ platform: Platform, _ handle: String) -> DeviceRecord? {
    let key = DeviceKey(platform: platform, handle: Self.normalized(handle, platform: platform))
    return stripe(of: key.handle).state.withLock { $0.record(of: key) }
  }

  private func stripe(of handle: String) -> Stripe {
    // FNV-1a over the last bytes, where handles differ most.
    var hash: UInt32 = 2_166_136_261
    for byte in handle.utf8.suffix(8) { hash = (hash ^ UInt32(byte)) &* 16_777_619 }
    return stripes[Int(hash >> 8) % stripes.count]
  }
}

/// The answers since the simulator started or was last reset; exact, even for devices that the store has removed.
package struct SimulatorCounts: Hashable, Sendable {
  /// The answers of one service.
  package struct Service: Hashable, Sendable {
    /// Pushes or token requests that were accepted.
    package var accepted = 0
    /// Accepted pushes that their device had accepted before.
    package var duplicates = 0
    /// The number of each answer: `200`, `410 Unregistered`; without an answer, `silence` or `connection dropped`.
    package var answers: [String: Int] = [:]
  }

  package var services: [SimulatedService: Service] = [:]
  /// Devices in the store.
  package var devices = 0

  /// The answers of a service; zeroes if there are none.
  package subscript(service: SimulatedService) -> Service { services[service] ?? Service() }

  /// Pushes accepted on all platforms.
  package var accepted: Int { Platform.allCases.reduce(0) { $0 + self[SimulatedService($1)].accepted } }
  /// Duplicates accepted on all platforms.
  package var duplicates: Int { Platform.allCases.reduce(0) { $0 + self[SimulatedService($1)].duplicates } }
}

/// A push that the simulator accepted.
package struct ReceivedNotification: Sendable {
  package let platform: Platform
  /// The device's address: an APNs token in lower case, an FCM token (`/topics/NAME` for a topic), a WNS channel's
  /// token.
  package let handle: String
  /// When it was accepted.
  package let time: UnixTime
  /// The id that identifies repetitions of the push: `apns-id`, or the sender's own id in the message; nil if there is
  /// none.
  package let pushID: String?
  /// The request's header fields, without pseudo fields and credentials.
  package let headers: [HeaderField]
  /// The payload as sent.
  package let payload: [UInt8]

  package init(
    platform: Platform, handle: String, time: UnixTime, pushID: String?, headers: [HeaderField], payload: [UInt8]
  ) {
    self.platform = platform
    self.handle = handle
    self.time = time
    self.pushID = pushID
    self.headers = headers
    self.payload = payload
  }

  package var text: String { String(decoding: payload, as: UTF8.self) }

  /// The value of the first header field with this name, given in lower case.
  package func header(_ name: String) -> String? { headers.first { $0.name.lowercased() == name }?.value }
}

/// A header field, as sent.
package struct HeaderField: Hashable, Sendable {
  package let name: String
  package let value: String

  package init(_ name: String, _ value: String) {
    self.name = name
    self.value = value
  }
}
