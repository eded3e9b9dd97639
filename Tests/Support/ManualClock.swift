package import FanfareCore
import Synchronization

/// A clock that stands still until a test moves it.
package final class ManualClock: WallClock {
  private let time: Mutex<UnixTime>

  /// Stands at the given moment; unless told otherwise at 2026-11-21T08:00:00Z.
  package init(at time: UnixTime = UnixTime(milliseconds: 1_795_248_000_000)) {
    self.time = Mutex(time)
  }

  package func now() -> UnixTime {
    time.withLock { $0 }
  }

  /// Moves the clock on, or back by a negative duration.
  package func advance(by duration: Duration) {
    time.withLock { $0 = $0 + duration }
  }
}
