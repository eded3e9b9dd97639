import RDKafka

/// The batches being written, in the order in which they were consumed, which is the order of their settlement.
struct PendingWrites {
  /// Positions up to which everything is written and that are not stored yet.
  var reached: [TopicPartition: Int64] = [:]
  private var writes: [(number: Int, batch: LedgerBatch, duplicates: Int??)] = []
  private var last = 0

  var count: Int { writes.count }

  /// Adds a batch and returns its number.
  mutating func begin(_ batch: LedgerBatch) -> Int {
    last += 1
    writes.append((last, batch, nil))
    return last
  }

  /// Ends a write; `duplicates` is nil when the batch could not be written.
  mutating func end(_ number: Int, duplicates: Int?) {
    guard let index = writes.firstIndex(where: { $0.number == number }) else { return }
    writes[index].duplicates = .some(duplicates)
  }

  /// Removes and returns the first batch if its write has ended.
  mutating func takeFirst() -> (batch: LedgerBatch, duplicates: Int?)? {
    guard let first = writes.first, let duplicates = first.duplicates else { return nil }
    writes.removeFirst()
    if duplicates != nil { reached.merge(first.batch.positions) { $1 } }
    return (first.batch, duplicates)
  }
}

/// Finds the partitions whose committed offset is beyond the store's position.
///
/// That happens when the store is new, restored from a backup, or has lost its last transactions in a power failure.
/// Positions of the store that are ahead of the group's are not used: reading records twice is harmless, and they are
/// meaningless when a topic was deleted and created again.
enum OffsetRewind {
  /// The offsets to commit before reading begins. `lowest` is called at most once, for the partitions unknown to the
  /// store.
  static func offsets(
    of partitions: [TopicPartition], committed: [PartitionOffset], recorded: [TopicPartition: Int64],
    lowest: ([TopicPartition]) async throws -> [PartitionOffset]
  ) async rethrows -> [PartitionOffset] {
    // A partition without a committed offset is read from its earliest record anyway.
    let committed = Dictionary(committed.map { ($0.partition, $0.offset) }) { $1 }
    let unknown = partitions.filter { committed[$0] != nil && recorded[$0] == nil }
    let known = partitions.compactMap { partition in
      recorded[partition].map { PartitionOffset(partition: partition, offset: $0) }
    }
    return try await (known + (unknown.isEmpty ? [] : lowest(unknown))).filter { position in
      committed[position.partition].map { position.offset < $0 } ?? false
    }
  }
}
