import Synchronization

/// How far the application has come in each assigned partition, for the lag.
final class Progress: Sendable {
  /// Nil where nothing is known yet: then everything that is there counts as lag.
  private let state = Mutex<[TopicPartition: Int64?]>([:])

  /// The next offset to settle of each assigned partition.
  var positions: [TopicPartition: Int64?] {
    state.withLock { $0 }
  }

  /// Partitions have been assigned.
  func add(_ partitions: [TopicPartition]) {
    state.withLock { state in
      for partition in partitions { state[partition] = .some(nil) }
    }
  }

  /// Partitions are gone.
  func remove(_ partitions: [TopicPartition]) {
    state.withLock { state in
      for partition in partitions { state[partition] = nil }
    }
  }

  /// The group has come this far before.
  func resumed(_ offsets: [PartitionOffset]) {
    state.withLock { state in
      for offset in offsets {
        if case .some(.none) = state[offset.partition] { state[offset.partition] = .some(offset.offset) }
      }
    }
  }

  /// The application has come this far.
  func stored(_ offsets: [PartitionOffset]) {
    state.withLock { state in
      for offset in offsets where state[offset.partition] != nil { state[offset.partition] = .some(offset.offset) }
    }
  }
}
