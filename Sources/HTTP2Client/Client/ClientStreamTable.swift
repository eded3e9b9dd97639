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
  }

  /// Changes the stream in `slot` where it is; nil if there is none. (A `_modify` of the subscript would take its frame
  /// from the heap, at each of the half dozen changes of a request.)
  mutating func change<Result>(_ slot: Int, _ change: (inout ClientStream) -> Result) -> Result? {
    guard slots[slot] != nil else { return nil }
    return change(&slots[slot]!)  // It is there: see above.
  }

  /// The slot that the next stream will be put into.
  var nextSlot: Int { free.last ?? slots.count }

  /// Puts a stream into `nextSlot`.
  mutating func insert(_ stream: consuming ClientStream) {
    count += 1
    if let slot = free.popLast() { slots[slot] = stream } else { slots.append(stream) }
  }

  /// Empties `slot` for another stream. Gives the stream that was in it, nil if its end has been reported already or
  /// the slot is empty: nghttp2 may name a request that it could not send twice in a row, as not sent and as closed.
  @discardableResult
  mutating func remove(_ slot: Int) -> ClientStream? {
    guard let stream = slots[slot].take() else { return nil }
    count -= 1
    free.append(slot)
    return stream.isReported ? nil : stream
  }
}
