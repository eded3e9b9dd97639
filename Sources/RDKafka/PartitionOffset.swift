/// How far a group has come in one partition.
package struct PartitionOffset: Sendable, Hashable {
  /// The partition.
  package var partition: TopicPartition
  /// The offset of the next record to read: one more than that of the last record done.
  package var offset: Int64
  /// Text kept with a committed offset (brokers allow 4096 bytes by default); not kept by ``Consumer/store(_:)``.
  package var metadata: String?

  /// Makes an offset.
  package init(partition: TopicPartition, offset: Int64, metadata: String? = nil) {
    self.partition = partition
    self.offset = offset
    self.metadata = metadata
  }
}
