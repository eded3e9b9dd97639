import CRDKafka

/// Owns one reference to a queue of a handle, and keeps the handle alive.
///
/// Unchecked: the pointer never changes, and librdkafka's queues have a lock of their own.
@safe final class Queue: @unchecked Sendable {
  /// The handle it belongs to.
  let handle: Handle
  /// What librdkafka's functions take.
  let pointer: OpaquePointer
  private let wakeUp: WakeUp?

  /// Takes over the reference `pointer`.
  private init(adopting pointer: OpaquePointer, of handle: Handle, wakeUp: WakeUp?) {
    self.handle = handle
    unsafe self.pointer = unsafe pointer
    self.wakeUp = wakeUp
    if let wakeUp {
      var one: UInt64 = 1
      // librdkafka copies the payload and writes it whenever the queue ceases to be empty.
      unsafe rd_kafka_queue_io_event_enable(pointer, wakeUp.descriptor, &one, 8)
    }
  }

  deinit {
    // The descriptor may be closed and reused as soon as nobody refers to it here.
    if wakeUp != nil { unsafe rd_kafka_queue_io_event_enable(pointer, -1, nil, 0) }
    unsafe rd_kafka_queue_destroy(pointer)
  }

  /// A new queue.
  static func make(on handle: Handle, wakeUp: WakeUp? = nil) throws(RDKafkaError) -> Queue {
    guard let pointer = unsafe rd_kafka_queue_new(handle.pointer) else { throw outOfMemory }
    return unsafe Queue(adopting: pointer, of: handle, wakeUp: wakeUp)
  }

  /// Where a producer's delivery reports, errors and log lines arrive.
  static func main(of handle: Handle) throws(RDKafkaError) -> Queue {
    guard let pointer = unsafe rd_kafka_queue_get_main(handle.pointer) else { throw outOfMemory }
    return unsafe Queue(adopting: pointer, of: handle, wakeUp: nil)
  }

  /// Where a consumer's rebalances arrive, and with them everything that would be on its main queue.
  static func consumer(of handle: Handle, wakeUp: WakeUp) throws(RDKafkaError) -> Queue {
    // Redirects the main queue, with errors and log lines, to the consumer's.
    let status = unsafe rd_kafka_poll_set_consumer(handle.pointer)
    guard status == RD_KAFKA_RESP_ERR_NO_ERROR else { throw RDKafkaError(response: status) }
    guard let pointer = unsafe rd_kafka_queue_get_consumer(handle.pointer) else { throw outOfMemory }
    return unsafe Queue(adopting: pointer, of: handle, wakeUp: wakeUp)
  }

  /// How much waits on it.
  var count: Int { unsafe rd_kafka_queue_length(pointer) }

  /// Ends the current or the next blocking poll of this queue early. From any thread.
  func interrupt() {
    unsafe rd_kafka_queue_yield(pointer)
  }

  private static var outOfMemory: RDKafkaError {
    RDKafkaError(code: .broker, message: "librdkafka made no queue")
  }
}
