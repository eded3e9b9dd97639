import Glibc

/// A short rest of a dedicated thread which has nothing to wait for.
enum Pause {
  /// Blocks the thread for 20 ms.
  static func briefly() {
    usleep(20_000)
  }
}
