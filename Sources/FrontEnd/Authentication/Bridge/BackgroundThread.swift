import Glibc

/// A thread for work that takes long and may wait.
///
/// Neither the threads of Swift's pool nor those of Dispatch are used: both are as many as the cores, and a thread that
/// hashes is missing to everybody else.
enum BackgroundThread {
  /// The nice value of these threads: the kernel gives them about a tenth of the time of a core that others want.
  static let niceness: Int32 = 10

  private final class Body: Sendable {
    let run: @Sendable () -> Void

    init(_ run: @escaping @Sendable () -> Void) { self.run = run }
  }

  /// Runs `body` on a new thread of low priority, which ends when `body` returns.
  /// Returns false if the system has no thread left.
  static func start(_ body: @escaping @Sendable () -> Void) -> Bool {
    let context = unsafe Unmanaged.passRetained(
      Body {
        // On Linux 0 is the calling thread. A failure leaves the usual priority.
        _ = setpriority(Int32(PRIO_PROCESS.rawValue), 0, niceness)
        body()
      })
    var thread = pthread_t()
    let status = unsafe pthread_create(
      &thread, nil,
      { pointer in
        guard let pointer = unsafe pointer else { return nil }
        let body = unsafe Unmanaged<Body>.fromOpaque(pointer).takeRetainedValue()
        body.run()
        return nil
      }, context.toOpaque())
    guard status == 0 else {
      unsafe context.release()
      return false
    }
    _ = pthread_detach(thread)
    return true
  }

  /// The nice value of the calling thread.
  static var currentNiceness: Int32 { getpriority(Int32(PRIO_PROCESS.rawValue), 0) }
}
