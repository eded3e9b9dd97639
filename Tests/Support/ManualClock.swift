package import FanfareCore
import Synchronization

/// A clock that only the test moves.
package final class ManualClock: WallClock {
  private let time: Mutex<UnixTime>

  /// Creates a clock that shows `time`, by default 2026-11-21T08:00:00Z.
  package init(at time: UnixTime = UnixTime(milliseconds: 1_795_248_000_000)) {
    self.time = Mutex(time)
  }

  package func now() -> UnixTime {
    time.withLock { $0 }
  }

  package func set(_ time: UnixTime) {
    self.time.withLock { $0 = time }
  }

  /// Moves the clock forward, or back by a negative duration.
  package func advance(by duration: Duration) {
    time.withLock { $0 = $0 + duration }
  }
}
