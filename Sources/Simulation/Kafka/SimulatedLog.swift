/// The log of one partition: records in batches, each appended under a leader epoch.
struct SimulatedLog {
  /// A record as the log keeps it.
  struct Record {
    let key: [UInt8]?
    let value: [UInt8]
    /// Milliseconds since 1970, as the producer stamped it.
    let timestamp: Int64
    /// The process that has produced it.
    var writer = ""
  }

  struct Entry {
    let offset: Int64
    let epoch: Int32
    let batch: UInt64
    let record: Record
  }

  /// In the order of their offsets, which may have gaps.
  private(set) var entries: ArraySlice<Entry> = []
  /// The first offset that is kept.
  private(set) var start: Int64 = 0
  /// The offset of the next record.
  private(set) var end: Int64 = 0
  /// The leader epoch, which every election raises.
  private(set) var epoch: Int32 = 0
  /// The first offset of each batch, by which the leader recognises a batch that is sent again.
  private var batches: [UInt64: Int64] = [:]

  /// The first offset of a batch that is in the log.
  func first(of batch: UInt64) -> Int64? { batches[batch] }

  /// Appends a batch. Returns the offset of its first record.
  mutating func append(_ records: [Record], batch: UInt64) -> Int64 {
    let first = end
    for record in records {
      entries.append(Entry(offset: end, epoch: epoch, batch: batch, record: record))
      end += 1
    }
    batches[batch] = first
    return first
  }

  /// Leaves out offsets, as the markers of transactions do.
  mutating func leaveGap(_ count: Int64) { end += count }

  /// Another leader takes over.
  mutating func elect() { epoch += 1 }

  /// Loses the last batches. Returns their entries.
  mutating func truncate(batches count: Int) -> [Entry] {
    var lost: [Entry] = []
    for _ in 0..<count {
      guard let batch = entries.last?.batch else { break }
      while let last = entries.last, last.batch == batch { lost.append(entries.removeLast()) }
      batches[batch] = nil
    }
    if let first = lost.last { end = first.offset }
    return lost.reversed()
  }

  /// Deletes the oldest entries. Returns them.
  mutating func delete(_ count: Int) -> [Entry] {
    let deleted = Array(entries.prefix(count))
    entries.removeFirst(deleted.count)
    start = entries.first?.offset ?? end
    return deleted
  }

  /// The records from an offset on, at most so many.
  func read(from offset: Int64, limit: Int) -> ArraySlice<Entry> {
    entries[index(of: offset)...].prefix(limit)
  }

  /// The offset at which the entries of later epochs begin.
  func end(of epoch: Int32) -> Int64 {
    // Epochs rise seldom, so the entries of later ones are few.
    var end = end
    for entry in entries.reversed() {
      guard entry.epoch > epoch else { break }
      end = entry.offset
    }
    return end
  }

  /// The index of the first entry at the offset or behind it.
  private func index(of offset: Int64) -> Int {
    var (low, high) = (entries.startIndex, entries.endIndex)
    while low < high {
      let middle = low + (high - low) / 2
      if entries[middle].offset < offset { low = middle + 1 } else { high = middle }
    }
    return low
  }
}
