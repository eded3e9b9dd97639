import FoundationEssentials

/// Where the present moment comes from. Everything that stamps or expires asks one of these, so that a test can hold
/// time still.
package protocol WallClock: Sendable {
  /// The present moment. Callable from any thread; may step in either direction, as machines' clocks do.
  func now() -> UnixTime
}

/// The machine's own clock.
package struct SystemWallClock: WallClock {
  package init() {}

  package func now() -> UnixTime {
    UnixTime(milliseconds: Int64(Date().timeIntervalSince1970 * 1000))
  }
}
