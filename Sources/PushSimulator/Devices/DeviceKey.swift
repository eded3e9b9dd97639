import FanfareCore

/// A device's name in the store.
struct DeviceKey: Hashable, Sendable, Comparable {
  let platform: Platform
  let handle: String

  /// Orders by platform, then handle: the order in which devices are listed.
  static func < (left: Self, right: Self) -> Bool {
    left.platform == right.platform ? left.handle < right.handle : left.platform.rawValue < right.platform.rawValue
  }
}
