import RDKafka

/// Where the consumer must go back to because the file knows less of the log than the group has committed.
///
/// That happens when the file is new, is restored from a copy, or has lost its last transactions in a power failure.
/// Positions in the file that are ahead of the group's are not used: reading records twice does no harm, and where a
/// topic has been made anew they mean nothing.
enum Rewind {
  /// The offsets to commit before reading begins. `lowest` is asked once, for all partitions of which the file has
  /// nothing.
  static func offsets(
    of partitions: [TopicPartition], committed: [PartitionOffset], recorded: [TopicPartition: Int64],
    lowest: ([TopicPartition]) async throws -> [PartitionOffset]
  ) async rethrows -> [PartitionOffset] {
    // A group without an offset begins with the earliest record anyway.
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
