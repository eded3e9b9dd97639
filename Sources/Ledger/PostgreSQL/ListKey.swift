import FanfareCore

/// Numbers that stand for names in the indexes that lists are read from: of one size, they cost an index less than half
/// of what texts do. Two names may have the same number, so whoever looks for one compares the names, too. They are in
/// tables: never change how they are made.
enum ListKey {
  /// The hub's sends.
  static func hub(_ hub: HubName) -> Int64 { key(hub, "", 0) }

  /// What a user has sent in the hub.
  static func sender(_ sender: String, hub: HubName) -> Int64 { key(hub, sender, 1) }

  /// What was sent to the audience in the hub.
  static func audience(_ audience: String, hub: HubName) -> Int64 { key(hub, audience, 2) }

  /// FNV-1a of hub, kind and name; no name of a hub contains the byte between.
  private static func key(_ hub: HubName, _ name: String, _ kind: UInt8) -> Int64 {
    var hash: UInt64 = 0xCBF2_9CE4_8422_2325
    func mix(_ byte: UInt8) { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3 }
    for byte in hub.rawValue.utf8 { mix(byte) }
    mix(kind)
    for byte in name.utf8 { mix(byte) }
    return Int64(bitPattern: hash)
  }
}
