/// A stretch of one partition.
package struct LogSpan: Sendable, Hashable {
  /// The partition.
  package var partition: TopicPartition
  /// The first offset.
  package var start: Int64
  /// The offset after the last one.
  package var end: Int64

  /// Makes a stretch.
  package init(partition: TopicPartition, start: Int64, end: Int64) {
    self.partition = partition
    self.start = start
    self.end = end
  }

  /// How many offsets it has; as many records, unless the log has holes.
  package var count: Int64 { max(0, end - start) }
}
