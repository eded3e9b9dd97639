import FanfareCore

/// The present, read once per turn of the engine: two clocks, because a wall clock may step and a delay must not.
struct Moment: Sendable {
  /// What stamps records and decides on expiry.
  let wall: UnixTime
  /// Milliseconds on a clock that only goes forward: what delays and deadlines are measured in.
  let uptime: Int64
}
