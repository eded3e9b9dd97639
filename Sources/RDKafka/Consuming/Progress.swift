import Synchronization

/// The application's position in each assigned partition, for the lag.
final class Progress: Sendable {
  /// A nil position is not known yet: then all records in the partition count as lag.
  private let state = Mutex<[TopicPartition: Int64?]>([:])

  /// The next offset to settle of each assigned partition.
  var positions: [TopicPartition: Int64?] {
    state.withLock { $0 }
  }

  /// Adds assigned partitions.
  func add(_ partitions: [TopicPartition]) {
    state.withLock { state in
      for partition in partitions { state[partition] = .some(nil) }
    }
  }

  /// Removes partitions that are no longer assigned.
  func remove(_ partitions: [TopicPartition]) {
    state.withLock { state in
      for partition in partitions { state[partition] = nil }
    }
  }

  /// Takes over the group's committed positions.
  func resumed(_ offsets: [PartitionOffset]) {
    state.withLock { state in
      for offset in offsets {
        if case .some(.none) = state[offset.partition] { state[offset.partition] = .some(offset.offset) }
      }
    }
  }

  /// Advances to the positions that the application has stored.
  func stored(_ offsets: [PartitionOffset]) {
    state.withLock { state in
      for offset in offsets where state[offset.partition] != nil { state[offset.partition] = .some(offset.offset) }
    }
  }
}
