/// One partition of one topic.
package struct TopicPartition: Hashable, Sendable, CustomStringConvertible {
  /// The topic.
  package var topic: String
  /// The partition's number, from 0.
  package var partition: Int32

  /// Makes a name of a partition.
  package init(topic: String, partition: Int32) {
    self.topic = topic
    self.partition = partition
  }

  /// `topic[partition]`.
  package var description: String {
    "\(topic)[\(partition)]"
  }
}
