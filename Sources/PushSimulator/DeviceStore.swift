package import FanfareCore
import Synchronization

/// What arrived on the devices, and how everything was answered.
///
/// Keeps the newest notifications of each device up to a limit, and a limited number of devices; the counts stay exact.
/// All methods may be called from any thread, and none waits for another but for the length of one insertion.
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
    // A small store is one stripe, so that its limits are exact.
    let count = configuration.maximumDevices >= 1000 ? 64 : 1
    stripes = (0..<count).map { _ in
      Stripe(
        StoreStripe(
          deviceLimit: max(1, configuration.maximumDevices / count),
          notificationLimit: configuration.notificationsPerDevice,
          window: configuration.duplicateWindow / count))
    }
  }

  /// A device with the number of notifications it has received.
  package struct Device: Hashable, Sendable {
    package let platform: Platform
    package let handle: String
    package let received: Int
  }

  /// The notifications kept of a device, oldest first. `handle` is as the platform gives it out: case of an APNs token
  /// does not matter, and a WNS channel may be given as its whole URI.
  package func notifications(_ platform: Platform, _ handle: String) -> [ReceivedNotification] {
    record(platform, handle)?.notifications ?? []
  }

  /// How many notifications a device has received since the store began to keep it; nil for one it does not know.
  package func received(_ platform: Platform, _ handle: String) -> Int? {
    record(platform, handle)?.received
  }

  /// Up to `limit` devices in the order of platform and handle, those after the given one; of one platform or of all.
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

  /// All counts, each exact; pushes that arrive meanwhile may be in some and not in others.
  package func counts() -> SimulatorCounts {
    var counts = SimulatorCounts()
    for stripe in stripes { stripe.state.withLock { $0.add(to: &counts) } }
    return counts
  }

  /// Forgets a device; false when it was not there.
  package func remove(_ platform: Platform, _ handle: String) -> Bool {
    let key = DeviceKey(platform: platform, handle: Self.normalized(handle, platform: platform))
    return stripe(of: key.handle).state.withLock { state in
      guard state.record(of: key) != nil else { return false }
      state.remove(key)
      return true
    }
  }

  /// Forgets all devices and sets all counts to zero.
  package func reset() {
    for stripe in stripes { stripe.state.withLock { $0.reset() } }
  }

  /// Every notification accepted from now on. One that is not read in time makes room for the newest: a reader never
  /// slows a push down.
  package func events(bufferingNewest limit: Int = 10_000) -> AsyncStream<ReceivedNotification> {
    observers.stream(bufferingNewest: limit)
  }

  /// Whether another reader over HTTP may be let in. Those in this process are its own business.
  var hasRoomForObserver: Bool { observers.count < 100 }

  /// Counts and keeps an accepted push.
  func accept(_ notification: ReceivedNotification) {
    stripe(of: notification.handle).state.withLock { state in
      if keepsNotifications {
        state.accept(notification)
      } else {
        state.countAccepted(SimulatedService(notification.platform))
      }
    }
    observers.notify(notification)
  }

  /// Counts a token that was given out.
  func countAccepted(_ service: SimulatedService) {
    stripe(of: "").state.withLock { $0.countAccepted(service) }
  }

  /// Takes it back that what was accepted last for the handle, the empty one for a token, was answered.
  func countUnanswered(_ service: SimulatedService, handle: String) {
    stripe(of: handle).state.withLock { $0.countUnanswered(service) }
  }

  /// Counts an answer that accepted nothing.
  func count(_ label: String, by service: SimulatedService, handle: String = "") {
    stripe(of: handle).state.withLock { $0.count(label, by: service) }
  }

  /// The form in which the store compares handles.
  static func normalized(_ handle: String, platform: Platform) -> String {
    switch platform {
    case .apns: handle.lowercased()
    case .fcm: handle
    case .wns: ChannelToken.token(ofURI: handle) ?? handle
    }
  }

  private func record(_ platform: Platform, _ handle: String) -> DeviceRecord? {
    let key = DeviceKey(platform: platform, handle: Self.normalized(handle, platform: platform))
    return stripe(of: key.handle).state.withLock { $0.record(of: key) }
  }

  private func stripe(of handle: String) -> Stripe {
    // FNV-1a over the last bytes: handles differ most at the end, and the dictionary hashes the whole anyway.
    var hash: UInt32 = 2_166_136_261
    for byte in handle.utf8.suffix(8) { hash = (hash ^ UInt32(byte)) &* 16_777_619 }
    return stripes[Int(hash >> 8) % stripes.count]
  }
}
