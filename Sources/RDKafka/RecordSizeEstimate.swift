/// How large the next records are taken to be, for whoever asks for so many that their bytes keep to a limit. Follows
/// larger ones at once and smaller ones slowly.
package struct RecordSizeEstimate: Sendable {
  private var bytesPerRecord = 16_384.0

  package init() {}

  /// Records have come.
  package mutating func observe(records: Int, bytes: Int) {
    guard records > 0 else { return }
    let average = Double(bytes) / Double(records)
    bytesPerRecord = average > bytesPerRecord ? average : bytesPerRecord * 0.75 + average * 0.25
  }

  /// How many such records have so many bytes.
  package func records(in bytes: Int) -> Int { Int(Double(max(0, bytes)) / max(1, bytesPerRecord)) }
}
