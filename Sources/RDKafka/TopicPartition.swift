/// One partition of a topic.
package struct TopicPartition: Hashable, Sendable, CustomStringConvertible {
  package var topic: String
  /// The partition's number, from 0.
  package var partition: Int32

  package init(topic: String, partition: Int32) {
    self.topic = topic
    self.partition = partition
  }

  /// `topic[partition]`.
  package var description: String { "\(topic)[\(partition)]" }
}

/// The position of a consumer group in one partition.
package struct PartitionOffset: Sendable, Hashable {
  package var partition: TopicPartition
  /// The offset of the next record to read: one after the last settled record.
  package var offset: Int64
  /// Text committed with the offset; brokers allow 4096 bytes by default.
  /// ``Consumer/store(_:)`` ignores it.
  package var metadata: String?

  package init(partition: TopicPartition, offset: Int64, metadata: String? = nil) {
    self.partition = partition
    self.offset = offset
    self.metadata = metadata
  }
}

/// The position that the broker gave a record.
package struct RecordPosition: Sendable, Hashable {
  package var topic: String
  package var partition: Int32
  package var offset: Int64

  package init(topic: String, partition: Int32, offset: Int64) {
    self.topic = topic
    self.partition = partition
    self.offset = offset
  }
}

/// A range of offsets of one partition.
package struct LogSpan: Sendable, Hashable {
  package var partition: TopicPartition
  /// The first offset.
  package var start: Int64
  /// The offset after the last one.
  package var end: Int64

  package init(partition: TopicPartition, start: Int64, end: Int64) {
    self.partition = partition
    self.start = start
    self.end = end
  }

  /// The number of offsets; the number of records may be lower, because a log can have holes.
  package var count: Int64 { max(0, end - start) }
}
