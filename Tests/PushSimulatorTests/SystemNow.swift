import FanfareCore
import Synchronization

/// The present moment, as the simulator's clock has it.
enum SystemNow {
  static var seconds: Int64 { SystemWallClock().now().seconds }
}

/// A clock that stands still until it is told to move.
final class StandingClock: WallClock {
  private let milliseconds = Atomic<Int64>(SystemWallClock().now().milliseconds)

  func now() -> UnixTime { UnixTime(milliseconds: milliseconds.load(ordering: .relaxed)) }

  func advance(by duration: Duration) {
    milliseconds.add(duration.components.seconds * 1000, ordering: .relaxed)
  }
}
