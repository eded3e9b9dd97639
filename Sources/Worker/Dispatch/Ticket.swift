/// The number of one device of one work item, small enough to travel with a push and come back with its outcome.
///
/// The generation tells a slot's present item from the one it held before, so that an outcome that comes after its item
/// was given up finds nothing.
struct Ticket: Hashable, Sendable {
  /// The most devices that one work item may have.
  static let maximumDevices = 1 << 24
  /// How many items can have been in a place before one is taken for another.
  static let generations = 1 << 19
  /// The most work items at any time.
  static let maximumSlots = 1 << 20

  let rawValue: UInt64

  init(rawValue: UInt64) {
    self.rawValue = rawValue
  }

  /// `isBulk`: of a broadcast, whose pushes have a lane of their own.
  init(slot: Int, generation: UInt32, device: Int = 0, isBulk: Bool = false) {
    rawValue = (isBulk ? 1 << 63 : 0) | UInt64(generation & 0x7_FFFF) << 44 | UInt64(slot) << 24 | UInt64(device)
  }

  /// Whether it is of a broadcast.
  var isBulk: Bool { rawValue >> 63 == 1 }

  /// The work item's place.
  var slot: Int { Int(rawValue >> 24 & 0xF_FFFF) }
  /// Which of the items that were in that place.
  var generation: UInt32 { UInt32(rawValue >> 44 & 0x7_FFFF) }
  /// The device's place among the item's.
  var device: Int { Int(rawValue & 0xFF_FFFF) }
}
