import FanfareCore

/// The machine's time, for what the kernel reports in it.
enum SystemClockReading {
  /// Seconds since the epoch.
  static func now() -> Int64 { SystemWallClock().now().seconds }
}
