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
