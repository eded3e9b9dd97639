import Synchronization

/// A floating-point number that many threads add to without a lock.
struct AtomicDouble: ~Copyable, Sendable {
  private let bits = Atomic<UInt64>(0)

  /// The number now.
  func load() -> Double { Double(bitPattern: bits.load(ordering: .relaxed)) }

  /// Replaces the number.
  func store(_ value: Double) { bits.store(value.bitPattern, ordering: .relaxed) }

  /// Adds to the number; tries again when another thread was quicker.
  func add(_ amount: Double) {
    var old = bits.load(ordering: .relaxed)
    while true {
      let new = (Double(bitPattern: old) + amount).bitPattern
      let (exchanged, current) = bits.weakCompareExchange(expected: old, desired: new, ordering: .relaxed)
      if exchanged { return }
      old = current
    }
  }
}
