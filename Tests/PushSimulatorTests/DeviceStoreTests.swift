import FanfareCore
import Testing

@testable import PushSimulator

@Suite struct DeviceStoreTests {
  private func notification(_ handle: String, _ id: String? = nil) -> ReceivedNotification {
    ReceivedNotification(
      platform: .apns, handle: handle, time: UnixTime(milliseconds: 0), pushID: id, headers: [],
      payload: Array(handle.utf8))
  }

  @Test func keepsTheNewestOfEachDevice() {
    var configuration = SimulatorConfiguration()
    configuration.notificationsPerDevice = 3
    let store = DeviceStore(configuration)
    for number in 1...5 { store.accept(notification("aa", String(number))) }
    #expect(store.notifications(.apns, "aa").map(\.pushID) == ["3", "4", "5"])
    #expect(store.received(.apns, "aa") == 5)
    #expect(store.counts().accepted == 5)
  }

  @Test func oldestDeviceIsEvicted() {
    var configuration = SimulatorConfiguration()
    configuration.maximumDevices = 2
    let store = DeviceStore(configuration)
    for handle in ["aa", "bb", "aa", "cc"] { store.accept(notification(handle)) }
    #expect(store.devices(limit: 10).map(\.handle) == ["bb", "cc"])
    #expect(store.counts().accepted == 4)
    #expect(store.counts().devices == 2)
    for number in 0..<1000 { store.accept(notification(String(number))) }
    #expect(store.devices(limit: 10).map(\.handle) == ["998", "999"])
  }

  /// A device that was removed and returns is the newest.
  @Test func removedDeviceReturnsAsTheNewest() {
    var configuration = SimulatorConfiguration()
    configuration.maximumDevices = 2
    let store = DeviceStore(configuration)
    for handle in ["aa", "bb"] { store.accept(notification(handle)) }
    #expect(store.remove(.apns, "aa"))
    for handle in ["aa", "cc"] { store.accept(notification(handle)) }
    #expect(store.devices(limit: 10).map(\.handle) == ["aa", "cc"])
    for number in 0..<1000 {
      store.accept(notification(String(number)))
      #expect(store.remove(.apns, String(number)))
    }
    #expect(store.devices(limit: 10).map(\.handle) == ["cc"])
    store.accept(notification("dd"))
    #expect(store.devices(limit: 10).map(\.handle) == ["cc", "dd"])
  }

  @Test func boundsTheDevicesOfALargeStore() {
    var configuration = SimulatorConfiguration()
    configuration.maximumDevices = 1000
    let store = DeviceStore(configuration)
    for number in 0..<5000 { store.accept(notification(String(number))) }
    #expect(store.counts().accepted == 5000)
    #expect(store.counts().devices <= 1000)
  }

  @Test func countsDuplicatesPerDevice() {
    let store = DeviceStore(SimulatorConfiguration())
    for handle in ["aa", "bb", "aa", "aa"] { store.accept(notification(handle, "one")) }
    store.accept(notification("aa", "two"))
    store.accept(notification("aa"))
    store.accept(notification("aa"))
    #expect(store.counts().duplicates == 2)
  }

  @Test func remembersAtLeastTheWindow() {
    var identities = RecentIdentities(window: 10)
    let areNew = (Array(0..<25) + Array(15..<25) + [0]).map { identities.insert($0) }
    #expect(areNew == [Bool](repeating: true, count: 25) + [Bool](repeating: false, count: 10) + [true])
  }
}
