/// One record on its way to the broker.
package struct ProducerRecord: Sendable {
  /// Where it goes.
  package var topic: String
  /// The partition, modulo as many as the topic has: what belongs to one partition of another topic stays together.
  /// From 0 to 65,534. nil: by the key as Java's clients do (murmur2), and at random without a key.
  package var partition: Int32?
  /// Records with the same key go to the same partition and stay in order.
  package var key: [UInt8]?
  /// What it says.
  package var value: [UInt8]
  /// Each costs about half a microsecond on the way: keep them few.
  package var headers: [RecordHeader]

  /// Makes a record.
  package init(topic: String, partition: Int32? = nil, key: [UInt8]?, value: [UInt8], headers: [RecordHeader] = []) {
    self.topic = topic
    self.partition = partition
    self.key = key
    self.value = value
    self.headers = headers
  }

  /// Bytes of key and value.
  var payloadBytes: Int {
    (key?.count ?? 0) + value.count
  }
}
