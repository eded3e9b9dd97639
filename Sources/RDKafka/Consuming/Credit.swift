import Synchronization

/// How many records may still be handed to the application. Granted from any thread, spent by the consumer's.
final class Credit: Sendable {
  private let records = Atomic(0)
  private let isExhausted = Atomic(false)

  /// Adds to the credit, or takes back from it where `count` is negative: then it may fall below zero, as a debt that
  /// later grants pay.
  ///
  /// - Returns: Whether the consumer's thread has run out of credit and must be woken.
  func grant(_ count: Int) -> Bool {
    guard count > 0 else {
      spend(-count)
      return false
    }
    records.wrappingAdd(count, ordering: .sequentiallyConsistent)
    return isExhausted.exchange(false, ordering: .sequentiallyConsistent)
  }

  /// What is left. When it is nothing, the next grant wakes the consumer's thread.
  func available() -> Int {
    let left = records.load(ordering: .sequentiallyConsistent)
    guard left <= 0 else { return left }
    isExhausted.store(true, ordering: .sequentiallyConsistent)
    // A grant between the two lines would have woken nobody.
    return max(0, records.load(ordering: .sequentiallyConsistent))
  }

  /// Takes `count` away.
  func spend(_ count: Int) {
    records.wrappingSubtract(count, ordering: .sequentiallyConsistent)
  }
}
