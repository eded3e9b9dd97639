import FanfareCore
import Glibc

/// Backoff between attempts to connect; shared by all slots of a pool.
struct ReconnectBackoff {
  static let backoff = Backoff(first: .milliseconds(50), limit: .seconds(5))

  /// Consecutive failures since the last success. Concurrent attempts count as one.
  private(set) var failures = 0
  /// No attempt may begin before this moment.
  private(set) var notBefore: ContinuousClock.Instant?
  private var lastFailure: ContinuousClock.Instant?

  /// Records that an attempt begun at `start` failed. `random`, from 0 to 1, is the jitter.
  ///
  /// Returns whether the failure counts. An attempt that began before the last counted failure does not: the pause must
  /// not grow with the number of concurrent attempts.
  mutating func failed(begunAt start: ContinuousClock.Instant, at now: ContinuousClock.Instant, random: Double) -> Bool
  {
    if let lastFailure, start < lastFailure { return false }
    lastFailure = now
    notBefore = now + Self.backoff.delay(failures, jitter: random)
    failures += 1
    return true
  }

  /// Records a success, which resets the backoff.
  mutating func succeeded() {
    self = ReconnectBackoff()
  }
}

/// Sleeps of a slot's own thread; never called on the cooperative pool.
enum Pause {
  /// Sleeps for a random time between half a millisecond and the maximum.
  static func upTo(milliseconds: Int) {
    usleep(UInt32.random(in: 500...UInt32(max(1, milliseconds) * 1000)))
  }

  /// Sleeps until the moment, at most a minute.
  static func until(_ moment: ContinuousClock.Instant) {
    let rest = (moment - .now) / .milliseconds(1)
    if rest > 0 { usleep(UInt32(min(rest, 60_000) * 1000)) }
  }
}
