import CRDKafka
import Glibc

/// A thread for one loop that blocks in librdkafka: such a wait must never hold a thread of the
/// cooperative pool.
enum DedicatedThread {
  private final class Body: Sendable {
    let run: @Sendable () -> Void

    init(_ run: @escaping @Sendable () -> Void) {
      self.run = run
    }
  }

  /// Runs `body` on a thread of its own, which ends when `body` returns.
  ///
  /// - Throws: ``RDKafkaError`` if the system has no thread left.
  static func start(name: String, _ body: @escaping @Sendable () -> Void) throws(RDKafkaError) {
    let context = unsafe Unmanaged.passRetained(Body(body))
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
      throw RDKafkaError(code: .broker, message: "no thread can be started (\(status))")
    }
    // Linux limits a thread's name to 15 bytes.
    _ = unsafe pthread_setname_np(thread, String(name.prefix(15)))
    _ = pthread_detach(thread)
  }
}
