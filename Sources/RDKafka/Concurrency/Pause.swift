import Glibc

/// A short rest of a dedicated thread.
enum Pause {
  /// Blocks the thread for 20 ms, when there is nothing to wait for.
  static func briefly() {
    usleep(20_000)
  }

  /// Blocks the thread for half a millisecond, in which what it is going to deal with comes together.
  static func toGather() {
    usleep(500)
  }
}
