/// librdkafka's delivery report for one record.
package struct Delivery: Sendable {
  /// The record's tag.
  var tag: DeliveryTag
  /// The record's partition, if it is in the log.
  package var partition: Int32
  /// The record's offset, if it is in the log.
  package var offset: Int64
  /// Bytes of key and value.
  package var bytes: Int
  /// librdkafka's error number, 0 for none.
  var error: Int32
  /// Whether a record that failed may be in the log nevertheless.
  var isPossiblyPersisted: Bool

  /// Whether the broker itself has reported that it has the record.
  ///
  /// When a later batch of the partition is acknowledged, librdkafka reports an earlier one as delivered too, without an
  /// error and without an offset, even if the broker has refused it. That is right only if the broker compares sequence
  /// numbers: then it would have refused the later batch. The embedded cluster never compares them; a real one does not
  /// while it has no state of the producer: in the producer's first moments, or a day after its last record. So such a
  /// report does not count.
  package var isAcknowledged: Bool {
    error == 0 && offset >= 0
  }
}

/// Names a record in flight in one word, which travels through librdkafka as the message's opaque.
/// It holds its submission's slot, its index in the submission, and its destination partition. No object's address goes
/// through C, so no pointer can dangle.
struct DeliveryTag: Sendable, Hashable {
  /// The partitions that fit into a tag.
  static let partitions: ClosedRange<Int32> = 0...65_534
  private static let places = UInt(1) << 24

  /// The submission's slot, below 2^24.
  var slot: Int
  /// The record's index in the submission, below 2^24.
  var index: Int
  /// The record's destination partition, modulo the topic's number of partitions; nil: chosen by the key.
  var partition: Int32?

  /// Names a record.
  init(slot: Int, index: Int, partition: Int32? = nil) {
    // A wrong name would give a record another record's acknowledgement. Memory is exhausted long before.
    precondition(UInt(slot) < Self.places && UInt(index) < Self.places, "too many records in flight")
    self.slot = slot
    self.index = index
    self.partition = partition
  }

  /// Reads the name back.
  init(word: UInt) {
    slot = Int(word >> 40)
    index = Int(word >> 16 & (Self.places - 1))
    partition = word & 0xffff == 0 ? nil : Int32(word & 0xffff) - 1
  }

  /// The name in one word: 24 bits, 24 bits, and 16 bits of which 0 stands for no partition.
  var word: UInt {
    UInt(slot) << 40 | UInt(index) << 16 | (partition.map { UInt($0) + 1 } ?? 0)
  }
}
