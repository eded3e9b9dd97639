/// One record to be produced.
package struct ProducerRecord: Sendable {
  package var topic: String
  /// The partition from 0 to 65,534, modulo the number of partitions of the topic: records of one
  /// partition of another topic stay together. nil: chosen by the key as in Java's clients (murmur2), and at random
  /// without a key.
  package var partition: Int32?
  /// Records with the same key go to the same partition and stay in order.
  package var key: [UInt8]?
  package var value: [UInt8]
  /// Each header costs about half a microsecond.
  package var headers: [RecordHeader]

  package init(topic: String, partition: Int32? = nil, key: [UInt8]?, value: [UInt8], headers: [RecordHeader] = []) {
    self.topic = topic
    self.partition = partition
    self.key = key
    self.value = value
    self.headers = headers
  }

  /// The bytes of key and value.
  package var payloadBytes: Int { (key?.count ?? 0) + value.count }
}

/// One record that was read.
///
/// Keys and values of a batch are slices of one array, which lives as long as any of them. Copy a slice that you keep
/// for long.
package struct ConsumedRecord: Sendable {
  package var topic: String
  package var partition: Int32
  package var offset: Int64
  /// When it was produced (or appended, as configured for the topic) in milliseconds since 1970; -1
  /// if unknown.
  package var timestamp: Int64
  /// The key; nil if it has none.
  package var key: ArraySlice<UInt8>?
  /// The value; empty for a tombstone.
  package var value: ArraySlice<UInt8>
  /// The headers in order; empty when the consumer does not read them.
  package var headers: [RecordHeader]
  /// The leader epoch under which it was appended; -1 if unknown, as with librdkafka before 2.1.
  package var leaderEpoch: Int32

  package init(
    topic: String, partition: Int32, offset: Int64, timestamp: Int64, key: ArraySlice<UInt8>?,
    value: ArraySlice<UInt8>, headers: [RecordHeader] = [], leaderEpoch: Int32 = -1
  ) {
    self.leaderEpoch = leaderEpoch
    self.topic = topic
    self.partition = partition
    self.offset = offset
    self.timestamp = timestamp
    self.key = key
    self.value = value
    self.headers = headers
  }

  /// The partition that it was read from.
  package var topicPartition: TopicPartition { TopicPartition(topic: topic, partition: partition) }
}

/// A header of a record.
package struct RecordHeader: Sendable, Hashable {
  /// The name, which need not be unique within a record.
  package var name: String
  package var value: [UInt8]

  package init(name: String, value: [UInt8]) {
    self.name = name
    self.value = value
  }

  package init(name: String, text: String) {
    self.init(name: name, value: Array(text.utf8))
  }
}
