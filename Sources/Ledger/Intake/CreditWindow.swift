import RDKafka

/// Limits the consumer's credit by records and by bytes: a status record has hundreds of bytes or millions.
struct CreditWindow {
  private let maximumRecords: Int
  private let maximumBytes: Int
  /// Records granted and not recorded yet.
  private var outstanding = 0
  private var typical = RecordSizeEstimate()

  init(maximumRecords: Int, maximumBytes: Int) {
    self.maximumRecords = max(1, maximumRecords)
    self.maximumBytes = maximumBytes
  }

  /// The credit to grant; negative to revoke credit because records turned out larger than estimated.
  mutating func grant() -> Int {
    let grant = min(maximumRecords, max(1, typical.records(in: maximumBytes))) - outstanding
    outstanding += grant
    return grant
  }

  /// Observes the size of consumed records.
  mutating func consumed(records: Int, bytes: Int) {
    typical.observe(records: records, bytes: bytes)
  }

  /// Returns the credit of recorded records.
  mutating func recorded(records: Int) {
    outstanding -= records
  }
}
