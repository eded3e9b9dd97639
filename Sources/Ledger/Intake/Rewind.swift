import RDKafka

/// Where the consumer must go back to because the file knows less of the log than the group has committed.
///
/// That happens when the file is new, is restored from a copy, or has lost its last transactions in a power failure. Positions in the
/// file that are ahead of the group's are not used: reading records twice does no harm, and where a topic has been made anew they
/// mean nothing.
enum Rewind {
  /// The offsets to commit before reading begins. `lowest` is asked for partitions of which the file has nothing.
  static func offsets(
    of partitions: [TopicPartition], committed: [PartitionOffset], recorded: [TopicPartition: Int64],
    lowest: (TopicPartition) async throws -> Int64
  ) async rethrows -> [PartitionOffset] {
    var rewinds: [PartitionOffset] = []
    let committed = Dictionary(committed.map { ($0.partition, $0.offset) }) { $1 }
    for partition in partitions {
      // A group without an offset begins with the earliest record anyway.
      guard let offset = committed[partition] else { continue }
      let position =
        if let known = recorded[partition] { known } else { try await lowest(partition) }
      if position < offset { rewinds.append(PartitionOffset(partition: partition, offset: position)) }
    }
    return rewinds
  }
}
