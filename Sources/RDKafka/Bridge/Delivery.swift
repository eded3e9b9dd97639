/// The broker's word on one record, as it came out of librdkafka.
struct Delivery: Sendable {
  /// Which record it is about.
  var ticket: Ticket
  /// Where it is, if it is there.
  var partition: Int32
  /// Its offset, if it is there.
  var offset: Int64
  /// Bytes of key and value.
  var bytes: Int
  /// librdkafka's error number, 0 for none.
  var error: Int32
  /// Whether a record that failed may be in the log nevertheless.
  var isPossiblyPersisted: Bool

  /// Whether the broker itself has said that it has the record.
  ///
  /// Without an error and without an offset nobody has: librdkafka concludes it when a batch sent later is
  /// acknowledged, even where the broker had refused the earlier one. The conclusion holds only where the broker
  /// compares the sequence numbers. The embedded cluster never does, and a real one does not while it knows nothing of
  /// the producer, as in its first moments, or a day after its last record.
  var isAcknowledged: Bool {
    error == 0 && offset >= 0
  }
}

/// Names a record in flight in one word, which travels through librdkafka as the message's opaque: its submission's
/// slot and its index in the submission, and where it is to go. No object's address goes through C, so nothing can
/// dangle.
struct Ticket: Sendable, Hashable {
  /// The partitions that it has room for.
  static let partitions: ClosedRange<Int32> = 0...65_534
  private static let places = UInt(1) << 24

  /// The submission's slot, below 2^24.
  var slot: Int
  /// The record's index in the submission, below 2^24.
  var index: Int
  /// The partition, modulo as many as the topic has; nil: by the key.
  var partition: Int32?

  /// Names a record.
  init(slot: Int, index: Int, partition: Int32? = nil) {
    // Of a record under another's name an acknowledgement would be believed that it never got. Memory is exhausted long
    // before.
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
