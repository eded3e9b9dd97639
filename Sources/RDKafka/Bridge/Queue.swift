import CRDKafka
import Glibc

/// Owns a reference to a queue of a handle, and keeps the handle alive.
///
/// Unchecked: the pointer never changes, and librdkafka's queues have a lock of their own.
@safe final class Queue: @unchecked Sendable {
  let handle: Handle
  let pointer: OpaquePointer
  private let wakeUp: WakeUp?

  /// Takes ownership of the reference.
  private init(adopting pointer: OpaquePointer, of handle: Handle, wakeUp: WakeUp?) {
    self.handle = handle
    unsafe self.pointer = unsafe pointer
    self.wakeUp = wakeUp
    if let wakeUp {
      var one: UInt64 = 1
      // librdkafka copies the payload and writes it to the descriptor whenever the queue ceases to be empty.
      unsafe rd_kafka_queue_io_event_enable(pointer, wakeUp.descriptor, &one, 8)
    }
  }

  deinit {
    // The descriptor may be closed and reused after the last reference to `wakeUp`.
    if wakeUp != nil { unsafe rd_kafka_queue_io_event_enable(pointer, -1, nil, 0) }
    unsafe rd_kafka_queue_destroy(pointer)
  }

  /// A new queue.
  static func make(on handle: Handle, wakeUp: WakeUp? = nil) throws(RDKafkaError) -> Queue {
    guard let pointer = unsafe rd_kafka_queue_new(handle.pointer) else { throw outOfMemory }
    return unsafe Queue(adopting: pointer, of: handle, wakeUp: wakeUp)
  }

  /// The queue of a producer's delivery reports, errors and log lines.
  static func main(of handle: Handle) throws(RDKafkaError) -> Queue {
    guard let pointer = unsafe rd_kafka_queue_get_main(handle.pointer) else { throw outOfMemory }
    return unsafe Queue(adopting: pointer, of: handle, wakeUp: nil)
  }

  /// The queue of a consumer's rebalances, to which its main queue is redirected.
  static func consumer(of handle: Handle, wakeUp: WakeUp) throws(RDKafkaError) -> Queue {
    // Redirects the main queue with errors and log lines to the consumer's queue.
    let status = unsafe rd_kafka_poll_set_consumer(handle.pointer)
    guard status == RD_KAFKA_RESP_ERR_NO_ERROR else { throw RDKafkaError(response: status) }
    guard let pointer = unsafe rd_kafka_queue_get_consumer(handle.pointer) else { throw outOfMemory }
    return unsafe Queue(adopting: pointer, of: handle, wakeUp: wakeUp)
  }

  /// The queue of a partition's records, redirected to no other.
  static func partition(_ partition: TopicPartition, of handle: Handle, wakeUp: WakeUp) throws(RDKafkaError) -> Queue {
    guard let pointer = unsafe rd_kafka_queue_get_partition(handle.pointer, partition.topic, partition.partition) else {
      throw outOfMemory
    }
    unsafe rd_kafka_queue_forward(pointer, nil)
    return unsafe Queue(adopting: pointer, of: handle, wakeUp: wakeUp)
  }

  /// The number of entries.
  var count: Int { unsafe rd_kafka_queue_length(pointer) }

  /// Ends the current or the next blocking poll of this queue early. Callable from any thread.
  func interrupt() {
    unsafe rd_kafka_queue_yield(pointer)
  }

  private static var outOfMemory: RDKafkaError {
    RDKafkaError(code: .broker, message: "librdkafka made no queue")
  }
}

/// An event descriptor on which a thread waits for librdkafka's queues and for the application.
final class WakeUp: Sendable {
  /// The descriptor for `rd_kafka_queue_io_event_enable`.
  /// Non-blocking, so that librdkafka's threads never wait for ours.
  let descriptor: Int32

  /// Creates a descriptor. Throws when the process has none left.
  init() throws(RDKafkaError) {
    descriptor = eventfd(0, Int32(EFD_NONBLOCK | EFD_CLOEXEC))
    guard descriptor >= 0 else { throw RDKafkaError(code: .broker, message: "no event descriptor is left (\(errno))") }
  }

  deinit {
    close(descriptor)
  }

  /// Ends the current wait, or the next one. Callable from any thread.
  func signal() {
    var one: UInt64 = 1
    // The write fails only when the counter is full, and then the waiting thread is woken anyway.
    _ = unsafe write(descriptor, &one, 8)
  }

  /// Waits for a signal for at most `milliseconds`, and resets all signals.
  func wait(milliseconds: Int32) {
    var request = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
    guard unsafe poll(&request, 1, milliseconds) > 0 else { return }
    var count: UInt64 = 0
    _ = unsafe read(descriptor, &count, 8)
  }
}
