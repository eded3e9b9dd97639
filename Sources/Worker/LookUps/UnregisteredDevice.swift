import FanfareCore

/// A device addressed by a handle that the registry does not know.
enum UnregisteredDevice {
  /// The target to push to. Its id is derived from hub, platform and handle, so that every worker and every repetition
  /// gives the device the same one: FNV-1a of the text from two starting points, as a UUID version 8.
  static func target(hub: HubName, platform: Platform, handle: String, at now: UnixTime) -> Target {
    let normalized = DeviceHandle.normalized(handle, platform: platform)
    func hash(_ start: UInt64) -> UInt64 {
      var hash = start
      for text in [hub.rawValue, platform.rawValue, normalized] {
        for byte in text.utf8 { hash = (hash ^ UInt64(byte)) &* 0x0000_0100_0000_01B3 }
        // A byte that occurs in no UTF-8 keeps the parts apart.
        hash = (hash ^ 0xFF) &* 0x0000_0100_0000_01B3
      }
      return hash ^ hash >> 32
    }
    let id = RegistrationID(
      high: (hash(0xCBF2_9CE4_8422_2325) & 0xFFFF_FFFF_FFFF_0FFF) | 0x8000,
      low: (hash(0x8422_2325_CBF2_9CE4) & 0x3FFF_FFFF_FFFF_FFFF) | 0x8000_0000_0000_0000)
    return Target(registration: id, platform: platform, handle: normalized, registeredAt: now)
  }
}
