/// Names one device of one work item in 64 bits: travels with a push and comes back with its
/// outcome.
///
/// A slot is used by one item after another. The generation tells them apart, so that an outcome that arrives after its
/// item was given up finds nothing.
struct Ticket: Hashable, Sendable {
  /// The most devices that one work item may have.
  static let maximumDevices = 1 << 24
  /// The number of items in one slot after which the generation repeats.
  static let generations = 1 << 19
  /// The most work items at any time.
  static let maximumSlots = 1 << 20

  let rawValue: UInt64

  init(rawValue: UInt64) {
    self.rawValue = rawValue
  }

  /// `isBroadcast`: the push belongs to a broadcast and waits in the broadcasts' lane of its queue.
  init(slot: Int, generation: UInt32, device: Int = 0, isBroadcast: Bool = false) {
    rawValue = (isBroadcast ? 1 << 63 : 0) | UInt64(generation & 0x7_FFFF) << 44 | UInt64(slot) << 24 | UInt64(device)
  }

  /// Whether the push belongs to a broadcast.
  var isBroadcast: Bool { rawValue >> 63 == 1 }

  /// The item's slot.
  var slot: Int { Int(rawValue >> 24 & 0xF_FFFF) }
  /// The item's generation, in 19 bits.
  var generation: UInt32 { UInt32(rawValue >> 44 & 0x7_FFFF) }
  /// The device's index among the item's devices.
  var device: Int { Int(rawValue & 0xFF_FFFF) }
}
