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
  /// Without an error and without an offset nobody has: librdkafka concludes it when a batch sent later is acknowledged, even where
  /// the broker had refused the earlier one. The conclusion holds only where the broker compares the sequence numbers. The embedded
  /// cluster never does, and a real one does not while it knows nothing of the producer, as in its first moments, or a day after its
  /// last record.
  var isAcknowledged: Bool {
    error == 0 && offset >= 0
  }
}

/// Names a record in flight in one word, which travels through librdkafka as the message's opaque: its submission's slot and its
/// index in the submission. No object's address goes through C, so nothing can dangle.
struct Ticket: Sendable, Hashable {
  /// The submission's slot.
  var slot: Int
  /// The record's index in the submission.
  var index: Int

  /// Names a record.
  init(slot: Int, index: Int) {
    self.slot = slot
    self.index = index
  }

  /// Reads the name back.
  init(word: UInt) {
    slot = Int(word >> 32)
    index = Int(word & 0xffff_ffff)
  }

  /// The name in one word: 32 bits each.
  var word: UInt {
    UInt(slot) << 32 | UInt(index)
  }
}
