import NIOCore

/// The streams of one connection, by slot. Slots are reused, so that finding a stream is an index and not a hash.
struct ClientStreamTable {
  private var slots: [ClientStream?] = []
  private var free: [Int] = []

  /// How many streams there are.
  private(set) var count = 0

  /// The slots in use, in no particular order.
  var occupied: some Sequence<Int> { slots.indices.lazy.filter { slots[$0] != nil } }

  /// The stream in `slot`, nil if there is none.
  subscript(slot: Int) -> ClientStream? {
    _read { yield slots[slot] }
    _modify { yield &slots[slot] }
  }

  /// Puts a stream into a free slot.
  mutating func insert(_ stream: ClientStream) -> Int {
    count += 1
    if let slot = free.popLast() {
      slots[slot] = stream
      return slot
    }
    slots.append(stream)
    return slots.count - 1
  }

  /// Takes the stream out of `slot`, which may be used for another one from now on.
  mutating func remove(_ slot: Int) -> ClientStream? {
    guard let stream = slots[slot].take() else { return nil }
    count -= 1
    free.append(slot)
    return stream
  }
}
