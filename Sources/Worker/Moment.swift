import FanfareCore

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
