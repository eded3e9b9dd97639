import Synchronization

/// The number of records that the consumer may still deliver.
/// Granted from any thread, spent by the consumer's.
final class Credit: Sendable {
  private let records = Atomic(0)
  private let isExhausted = Atomic(false)

  /// Adds credit.
  /// A negative `count` reduces it, possibly below zero; later grants make up for that.
  ///
  /// - Returns: Whether the consumer's thread had no credit and must be woken.
  func grant(_ count: Int) -> Bool {
    guard count > 0 else {
      spend(-count)
      return false
    }
    records.wrappingAdd(count, ordering: .sequentiallyConsistent)
    return isExhausted.exchange(false, ordering: .sequentiallyConsistent)
  }

  /// The remaining credit. When it is 0, the next grant wakes the consumer's thread.
  func available() -> Int {
    let left = records.load(ordering: .sequentiallyConsistent)
    guard left <= 0 else { return left }
    isExhausted.store(true, ordering: .sequentiallyConsistent)
    // Loaded again, because a grant between the two lines above would not have woken the thread.
    return max(0, records.load(ordering: .sequentiallyConsistent))
  }

  func spend(_ count: Int) {
    records.wrappingSubtract(count, ordering: .sequentiallyConsistent)
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
