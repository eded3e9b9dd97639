import FanfareCore

/// The clock of delays and deadlines.
/// A protocol, so that a test can let an hour pass without waiting.
package protocol DelayClock: Sendable {
  /// Milliseconds since some fixed moment; never goes back. Callable from any thread.
  func uptime() -> Int64

  /// Returns after that time, or throws `CancellationError` when the task is cancelled first.
  func sleep(for duration: Duration) async throws
}

/// The machine's continuous clock.
package struct SystemDelayClock: DelayClock {
  private let start = ContinuousClock.now

  package init() {}

  package func uptime() -> Int64 { (ContinuousClock.now - start).milliseconds }

  package func sleep(for duration: Duration) async throws {
    try await ContinuousClock().sleep(for: duration)
  }
}

/// The present, read once per turn of the engine, from two clocks: a wall clock may step, a delay
/// must not.
struct Moment: Sendable {
  /// Stamps records and decides on expiry.
  let wall: UnixTime
  /// Milliseconds on a clock that only goes forward: measures delays and deadlines.
  let uptime: Int64

  /// The wall-clock time at an uptime of this process.
  func wall(at uptime: Int64) -> UnixTime {
    wall + .milliseconds(uptime.subtractingClamped(self.uptime))
  }
  /// The uptime at a wall-clock time, which may be before the process's start.
  func uptime(at wall: UnixTime) -> Int64 { uptime.addingClamped((wall - self.wall).milliseconds) }
}
