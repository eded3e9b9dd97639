/// Consumer credit by the room that its holder has, in records and in bytes.
///
/// Invariant: after a grant, the credit fits into the room, unless records arrived that were under way when credit was
/// taken back.
package struct CreditWindow: Sendable {
  /// Outstanding credit; negative after a reduction that came too late for records under way.
  package private(set) var outstanding = 0
  package private(set) var typicalSize = RecordSizeEstimate()

  package init() {}

  /// Notes records that have arrived. nil bytes: they say nothing about the size of others.
  package mutating func receive(records: Int, bytes: Int?) {
    outstanding -= records
    if let bytes { typicalSize.observe(records: records, bytes: bytes) }
  }

  /// The change of credit for the room that is left; negative: a reduction, because records have turned out larger.
  ///
  /// Grants below `step` are collected until the credit is used up. `mayGrow`: whether the holder wants further records;
  /// evaluated last.
  package mutating func grant(
    records: Int, bytes: Int, step: Int = 1, mayGrow: @autoclosure () -> Bool = true
  ) -> Int {
    // At least one, however large the last ones were: only further records show that they have become smaller.
    let fitting = bytes > 0 ? max(1, typicalSize.records(in: bytes)) : 0
    let change = min(records, fitting) - outstanding
    if change >= 0 { guard change > 0, outstanding <= 0 || change >= step, mayGrow() else { return 0 } }
    outstanding += change
    return change
  }
}

/// An estimate of the size of the next records, from which a reader with a limit in bytes computes
/// its credit.
///
/// It follows larger records at once and smaller ones slowly.
package struct RecordSizeEstimate: Sendable {
  private var bytesPerRecord = 16_384.0

  package init() {}

  /// Updates the estimate.
  package mutating func observe(records: Int, bytes: Int) {
    guard records > 0 else { return }
    let average = Double(bytes) / Double(records)
    bytesPerRecord = average > bytesPerRecord ? average : bytesPerRecord * 0.75 + average * 0.25
  }

  /// The number of records of the estimated size that fit into `bytes`.
  package func records(in bytes: Int) -> Int {
    // in range: at most the limit of a setting
    Int(Double(max(0, bytes)) / max(1, bytesPerRecord))
  }
}
