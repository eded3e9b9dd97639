import RDKafka

/// How many records the consumer may hand over: as many as configured, and fewer when they are large, for a status record can have
/// hundreds of bytes or millions.
struct CreditWindow {
  private let maximumRecords: Int
  private let maximumBytes: Int
  /// Granted and not done.
  private var outstanding = 0
  private var typical = TypicalSize()

  init(maximumRecords: Int, maximumBytes: Int) {
    self.maximumRecords = max(1, maximumRecords)
    self.maximumBytes = maximumBytes
  }

  /// How many more records to grant.
  mutating func grant() -> Int {
    let room = min(maximumRecords, max(1, typical.records(in: maximumBytes)))
    let grant = max(0, room - outstanding)
    outstanding += grant
    return grant
  }

  /// Records are done with.
  mutating func done(records: Int, bytes: Int) {
    guard records > 0 else { return }
    outstanding -= records
    typical.follow(records: records, bytes: bytes)
  }
}
