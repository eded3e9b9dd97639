import RDKafka

/// How many records the consumer may hand over: as many as configured, and fewer when they are large, for a status
/// record can have hundreds of bytes or millions.
struct CreditWindow {
  private let maximumRecords: Int
  private let maximumBytes: Int
  /// Granted and not done.
  private var outstanding = 0
  private var typical = RecordSizeEstimate()

  init(maximumRecords: Int, maximumBytes: Int) {
    self.maximumRecords = max(1, maximumRecords)
    self.maximumBytes = maximumBytes
  }

  /// How many more records to grant; negative where so many are to be taken back, because those that have come are
  /// larger than was thought.
  mutating func grant() -> Int {
    let grant = min(maximumRecords, max(1, typical.records(in: maximumBytes))) - outstanding
    outstanding += grant
    return grant
  }

  /// Granted records have come.
  mutating func takenIn(records: Int, bytes: Int) {
    typical.observe(records: records, bytes: bytes)
  }

  /// Records are done with.
  mutating func done(records: Int) {
    outstanding -= records
  }
}
