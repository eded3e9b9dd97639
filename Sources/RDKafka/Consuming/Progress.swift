import Synchronization

/// The application's position in each assigned partition, for the lag.
package final class Progress: Sendable {
  /// A nil position is not known yet: then all records in the partition count as lag.
  private let state = Mutex<[TopicPartition: Int64?]>([:])

  /// The partitions that were assigned and are no longer.
  private let givenBack = Mutex<Set<TopicPartition>>([])

  package init() {}

  /// The next offset to settle of each assigned partition.
  var positions: [TopicPartition: Int64?] {
    state.withLock { $0 }
  }

  /// Whether the partition is assigned.
  package func contains(_ partition: TopicPartition) -> Bool { state.withLock { $0[partition] != nil } }

  /// The offsets without those of partitions that have been given back.
  package func withoutGivenBack(_ offsets: [PartitionOffset]) -> [PartitionOffset] {
    givenBack.withLock { former in former.isEmpty ? offsets : offsets.filter { !former.contains($0.partition) } }
  }

  /// Adds assigned partitions.
  package func add(_ partitions: [TopicPartition]) {
    givenBack.withLock { $0.subtract(partitions) }
    state.withLock { state in
      for partition in partitions { state[partition] = .some(nil) }
    }
  }

  /// Removes partitions that are no longer assigned.
  package func remove(_ partitions: [TopicPartition]) {
    givenBack.withLock { $0.formUnion(partitions) }
    state.withLock { state in
      for partition in partitions { state[partition] = nil }
    }
  }

  /// Takes over the group's committed positions.
  package func resumed(_ offsets: [PartitionOffset]) {
    state.withLock { state in
      for offset in offsets {
        if case .some(.none) = state[offset.partition] { state[offset.partition] = .some(offset.offset) }
      }
    }
  }

  /// Advances to the positions that the application has stored.
  package func stored(_ offsets: [PartitionOffset]) {
    state.withLock { state in
      for offset in offsets where state[offset.partition] != nil { state[offset.partition] = .some(offset.offset) }
    }
  }

  /// The lag of each partition, from its first offset and the one after its last record; nil: they are unknown, and the
  /// partition is omitted.
  package func lag(watermarks: (TopicPartition) -> (low: Int64, high: Int64)?) -> [TopicPartition: Int64] {
    var lag: [TopicPartition: Int64] = [:]
    for (partition, position) in positions {
      guard let (low, high) = watermarks(partition) else { continue }
      lag[partition] = max(0, high - max(position ?? low, low))
    }
    return lag
  }
}
