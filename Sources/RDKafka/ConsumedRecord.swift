/// One record as it was read. The bytes of all records of a batch are slices of one array, which lives as long as any
/// of them: copy what is kept for long.
package struct ConsumedRecord: Sendable {
  /// Where it was read.
  package var topic: String
  /// The partition within the topic.
  package var partition: Int32
  /// Its offset in the partition.
  package var offset: Int64
  /// When it was made (or appended, as the topic is configured): milliseconds since 1970, or -1 if unknown.
  package var timestamp: Int64
  /// The key, or nil if it has none.
  package var key: ArraySlice<UInt8>?
  /// The value; empty for a tombstone.
  package var value: ArraySlice<UInt8>
  /// The headers in order; empty when the consumer is configured not to read them.
  package var headers: [RecordHeader]

  /// Makes a record, as a test of a consumer's user does.
  package init(
    topic: String,
    partition: Int32,
    offset: Int64,
    timestamp: Int64,
    key: ArraySlice<UInt8>?,
    value: ArraySlice<UInt8>,
    headers: [RecordHeader] = []
  ) {
    self.topic = topic
    self.partition = partition
    self.offset = offset
    self.timestamp = timestamp
    self.key = key
    self.value = value
    self.headers = headers
  }

  /// The partition it was read from.
  package var topicPartition: TopicPartition {
    TopicPartition(topic: topic, partition: partition)
  }
}
