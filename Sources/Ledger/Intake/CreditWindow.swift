/// How many records the consumer may hand over: as many as configured, and fewer when they are large, for a status record can have
/// hundreds of bytes or millions.
struct CreditWindow {
  private let maximumRecords: Int
  private let maximumBytes: Int
  /// Granted and not done.
  private var outstanding = 0
  /// What a record is taken to have. Follows larger ones at once and smaller ones slowly.
  private var bytesPerRecord = 16_384.0

  init(maximumRecords: Int, maximumBytes: Int) {
    self.maximumRecords = max(1, maximumRecords)
    self.maximumBytes = maximumBytes
  }

  /// How many more records to grant.
  mutating func grant() -> Int {
    let room = min(maximumRecords, max(1, Int(Double(maximumBytes) / max(1, bytesPerRecord))))
    let grant = max(0, room - outstanding)
    outstanding += grant
    return grant
  }

  /// Records are done with.
  mutating func done(records: Int, bytes: Int) {
    guard records > 0 else { return }
    outstanding -= records
    let average = Double(bytes) / Double(records)
    bytesPerRecord = average > bytesPerRecord ? average : bytesPerRecord * 0.75 + average * 0.25
  }
}
