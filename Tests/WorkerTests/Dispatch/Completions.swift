import RDKafka
import Synchronization

/// Counts the rebalances that have been completed.
final class Completions: Sendable {
  private let counter = Mutex(0)

  /// How many there were.
  var count: Int { counter.withLock { $0 } }

  /// One to be completed.
  func rebalance() -> Rebalance { Rebalance { [self] in counter.withLock { $0 += 1 } } }
}
