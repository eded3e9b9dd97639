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

  /// Empties `slot`, which may be used for another stream from now on.
  mutating func remove(_ slot: Int) {
    guard slots[slot] != nil else { return }
    slots[slot] = nil
    count -= 1
    free.append(slot)
  }

  /// Empties `slot` and gives the stream that was in it; nil if its end has been reported already.
  mutating func removeUnlessReported(_ slot: Int) -> ClientStream? {
    let stream = slots[slot]?.isReported == false ? slots[slot].take() : nil
    if stream == nil {
      remove(slot)
    } else {
      count -= 1
      free.append(slot)
    }
    return stream
  }
}
