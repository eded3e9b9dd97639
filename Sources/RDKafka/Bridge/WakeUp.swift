import CRDKafka
import Glibc

/// An event descriptor on which one thread waits for librdkafka's queues and for the application at once.
final class WakeUp: Sendable {
  /// The descriptor, for `rd_kafka_queue_io_event_enable`. Non-blocking: librdkafka's threads must never wait for ours.
  let descriptor: Int32

  /// Makes a descriptor; fails when the process has none left.
  init() throws(RDKafkaError) {
    descriptor = eventfd(0, Int32(EFD_NONBLOCK | EFD_CLOEXEC))
    guard descriptor >= 0 else { throw RDKafkaError(code: .broker, message: "no event descriptor is left (\(errno))") }
  }

  deinit {
    close(descriptor)
  }

  /// Ends the current wait, or the next one if nobody waits. From any thread.
  func signal() {
    var one: UInt64 = 1
    // It fails only when the counter is full: then the waiter is woken anyway.
    _ = unsafe write(descriptor, &one, 8)
  }

  /// Waits for a signal, at most `milliseconds`, and takes back all signals given so far.
  func wait(milliseconds: Int32) {
    var request = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
    guard unsafe poll(&request, 1, milliseconds) > 0 else { return }
    var count: UInt64 = 0
    _ = unsafe read(descriptor, &count, 8)
  }
}
