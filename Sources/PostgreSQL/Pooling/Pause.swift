import Glibc

/// A rest of a slot's thread.
enum Pause {
  /// Blocks the thread for a random time.
  static func upTo(milliseconds: Int) {
    usleep(UInt32.random(in: 500...UInt32(max(1, milliseconds) * 1000)))
  }

  /// Blocks the thread until then.
  static func until(_ moment: ContinuousClock.Instant) {
    let rest = (moment - .now) / .milliseconds(1)
    if rest > 0 { usleep(UInt32(min(rest, 60_000) * 1000)) }
  }
}
