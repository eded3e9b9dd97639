import FanfareCore

/// 64-bit hashes of names for the indexes of lists, which take less than half the space of indexes on the names.
///
/// Names may collide, so queries compare the names, too. Stored: the hash must never change.
enum ListKey {
  static func hub(_ hub: HubName) -> Int64 { key(hub, "", 0) }

  static func sender(_ sender: String, hub: HubName) -> Int64 { key(hub, sender, 1) }

  static func audience(_ audience: String, hub: HubName) -> Int64 { key(hub, audience, 2) }

  /// FNV-1a of hub, kind and name. A hub's name never contains the byte of the kind.
  private static func key(_ hub: HubName, _ name: String, _ kind: UInt8) -> Int64 {
    var hash: UInt64 = 0xCBF2_9CE4_8422_2325
    func mix(_ byte: UInt8) { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3 }
    for byte in hub.rawValue.utf8 { mix(byte) }
    mix(kind)
    for byte in name.utf8 { mix(byte) }
    return Int64(bitPattern: hash)
  }
}
