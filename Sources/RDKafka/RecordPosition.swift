/// Where the broker has put a record.
package struct RecordPosition: Sendable, Hashable {
  /// The topic.
  package var topic: String
  /// The partition within it.
  package var partition: Int32
  /// The record's offset in the partition.
  package var offset: Int64

  /// Makes a position.
  package init(topic: String, partition: Int32, offset: Int64) {
    self.topic = topic
    self.partition = partition
    self.offset = offset
  }
}
