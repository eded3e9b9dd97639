import CRDKafka
import Glibc
import Synchronization

/// A handle for producing.
final class ProducerHandle: Sendable {
  /// The handle itself.
  let handle: Handle
  private let queue: Queue
  private let topics = Mutex<[String: TopicHandle]>([:])

  /// Creates a handle without contacting a broker.
  init(properties: PropertySet) throws(RDKafkaError) {
    let events = RD_KAFKA_EVENT_DR | RD_KAFKA_EVENT_ERROR | RD_KAFKA_EVENT_LOG
    handle = try Handle(kind: .producer, properties: properties, events: events)
    queue = try Queue.main(of: handle)
  }

  /// Registers the topic with librdkafka, once.
  func topic(_ name: String) throws(RDKafkaError) -> TopicHandle {
    if let topic = topics.withLock({ $0[name] }) { return topic }
    let topic = try TopicHandle(name: name, on: handle)
    // Two threads may get here at once; librdkafka returns the same topic to both, with a reference each.
    topics.withLock { $0[name] = topic }
    return topic
  }

  /// Whether the topic was registered before.
  func hasTopic(_ name: String) -> Bool { topics.withLock { $0[name] != nil } }

  /// Hands records to librdkafka, which copies them. Does not block.
  ///
  /// After a record for which the queue has no room, all others are refused for the same reason: room that is found in
  /// the next moment must not let a record overtake an earlier one of its key.
  ///
  /// - Returns: The refused records, with the reason; for each of the others a ``Delivery`` will come.
  func produce(_ records: [ProducerRecord], slot: Int) -> [(index: Int, error: RDKafkaError)] {
    var refused: [(index: Int, error: RDKafkaError)] = []
    var topic: TopicHandle?
    var topicName = ""
    for index in records.indices {
      do throws(RDKafkaError) {
        if topic == nil || records[index].topic != topicName {
          topicName = records[index].topic
          topic = try self.topic(topicName)
        }
        // Set just above.
        guard let topic else { continue }
        if let partition = records[index].partition, !DeliveryTag.partitions.contains(partition) {
          throw RDKafkaError(code: .unknownTopic, message: "\(topicName): there is no partition \(partition)")
        }
        let opaque = unsafe UnsafeMutableRawPointer(
          bitPattern: DeliveryTag(slot: slot, index: index, partition: records[index].partition).word)
        let response =
          records[index].headers.isEmpty
          ? unsafe Self.produce(records[index], to: topic, opaque: opaque)
          : unsafe produceWithHeaders(records[index], to: topic, opaque: opaque)
        if response != RD_KAFKA_RESP_ERR_NO_ERROR {
          throw RDKafkaError(delivery: response, isPossiblyPersisted: false, topic: topicName)
        }
      } catch {
        guard error.code != .queueFull else {
          return refused + (index..<records.endIndex).map { ($0, error) }
        }
        refused.append((index, error))
      }
    }
    return refused
  }

  private static func produce(
    _ record: ProducerRecord, to topic: TopicHandle, opaque: UnsafeMutableRawPointer?
  ) -> rd_kafka_resp_err_t {
    let status = unsafe record.value.withUnsafeBytes { value in
      unsafe withBytes(of: record.key) { key in
        // librdkafka only reads the bytes; with F_COPY it keeps none of them.
        unsafe rd_kafka_produce(
          topic.pointer, unassigned, RD_KAFKA_MSG_F_COPY,
          UnsafeMutableRawPointer(mutating: value.baseAddress), value.count, key.baseAddress, key.count, opaque)
      }
    }
    return status == 0 ? RD_KAFKA_RESP_ERR_NO_ERROR : rd_kafka_last_error()
  }

  /// Before 2.12 `produceva` crashes on a forced unknown partition if headers are given one by one
  /// (VTYPE_HEADER), so they are always given as a list.
  private func produceWithHeaders(
    _ record: ProducerRecord, to topic: TopicHandle, opaque: UnsafeMutableRawPointer?
  ) -> rd_kafka_resp_err_t {
    guard let headers = unsafe rd_kafka_headers_new(record.headers.count) else { return RD_KAFKA_RESP_ERR__FAIL }
    for header in record.headers {
      _ = unsafe header.value.withUnsafeBytes { value in
        unsafe rd_kafka_header_add(headers, header.name, -1, value.baseAddress ?? emptyBytes, value.count)
      }
    }
    let error = unsafe record.value.withUnsafeBytes { value in
      unsafe Self.withBytes(of: record.key) { key in
        var arguments = unsafe (
          rd_kafka_vu_t(), rd_kafka_vu_t(), rd_kafka_vu_t(), rd_kafka_vu_t(), rd_kafka_vu_t(), rd_kafka_vu_t(),
          rd_kafka_vu_t()
        )
        unsafe arguments.0.vtype = RD_KAFKA_VTYPE_RKT
        unsafe arguments.0.u.rkt = topic.pointer
        unsafe arguments.1.vtype = RD_KAFKA_VTYPE_PARTITION
        unsafe arguments.1.u.i32 = Self.unassigned
        unsafe arguments.2.vtype = RD_KAFKA_VTYPE_MSGFLAGS
        unsafe arguments.2.u.i = RD_KAFKA_MSG_F_COPY
        unsafe arguments.3.vtype = RD_KAFKA_VTYPE_VALUE
        unsafe arguments.3.u.mem.ptr = UnsafeMutableRawPointer(mutating: value.baseAddress)
        unsafe arguments.3.u.mem.size = value.count
        unsafe arguments.4.vtype = RD_KAFKA_VTYPE_KEY
        unsafe arguments.4.u.mem.ptr = UnsafeMutableRawPointer(mutating: key.baseAddress)
        unsafe arguments.4.u.mem.size = key.count
        unsafe arguments.5.vtype = RD_KAFKA_VTYPE_OPAQUE
        unsafe arguments.5.u.ptr = opaque
        unsafe arguments.6.vtype = RD_KAFKA_VTYPE_HEADERS
        unsafe arguments.6.u.headers = headers
        return unsafe withUnsafeBytes(of: &arguments) { bytes in
          unsafe rd_kafka_produceva(handle.pointer, bytes.baseAddress?.assumingMemoryBound(to: rd_kafka_vu_t.self), 7)
        }
      }
    }
    guard let error = unsafe error else { return RD_KAFKA_RESP_ERR_NO_ERROR }
    // librdkafka owns the list only if it took the record.
    unsafe rd_kafka_headers_destroy(headers)
    let response = unsafe rd_kafka_error_code(error)
    unsafe rd_kafka_error_destroy(error)
    return response
  }

  /// Waits at most `milliseconds` for events, and takes all of them.
  /// Replaces the content of `deliveries` with the delivery reports and returns all other events.
  func poll(milliseconds: Int32, deliveries: inout [Delivery]) -> [ClientNotice] {
    deliveries.removeAll(keepingCapacity: true)
    var notices: [ClientNotice] = []
    var timeout = milliseconds
    // The bound keeps a flood of reports from delaying their completions.
    while deliveries.count < 10_000, let event = unsafe rd_kafka_queue_poll(queue.pointer, timeout) {
      timeout = 0
      if unsafe rd_kafka_event_type(event) == RD_KAFKA_EVENT_DR {
        while let message = unsafe rd_kafka_event_message_next(event) {
          unsafe deliveries.append(Delivery(message))
        }
      } else if unsafe rd_kafka_event_type(event) == RD_KAFKA_EVENT_STATS {
        unsafe handle.report(statistics: event)
      } else if let notice = unsafe ClientNotice(event: event, handle: handle) {
        notices.append(notice)
      }
      unsafe rd_kafka_event_destroy(event)
    }
    return notices
  }

  /// Ends the current or the next ``poll(milliseconds:deliveries:)`` early. From any thread.
  func interrupt() {
    queue.interrupt()
  }

  /// Gives up everything queued and in flight; a ``Delivery`` comes for each record.
  /// Does not block.
  func purge() {
    unsafe rd_kafka_purge(
      handle.pointer, RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT | RD_KAFKA_PURGE_F_NON_BLOCKING)
  }

  private static let unassigned: Int32 = -1

  private static func withBytes<Value>(
    of bytes: [UInt8]?, _ body: (UnsafeRawBufferPointer) -> Value
  ) -> Value {
    // An empty key must not become a missing key: librdkafka tells them apart by the address.
    guard let bytes else { return unsafe body(UnsafeRawBufferPointer(start: nil, count: 0)) }
    return unsafe bytes.withUnsafeBytes { buffer in
      unsafe body(UnsafeRawBufferPointer(start: buffer.baseAddress ?? emptyBytes, count: buffer.count))
    }
  }
}

/// The address of empty keys and header values: not null, and no byte of it is read.
///
/// Unchecked: never written, never freed.
private nonisolated(unsafe) let emptyBytes = UnsafeRawPointer(
  UnsafeMutableRawPointer.allocate(byteCount: 1, alignment: 1))

extension Delivery {
  /// Reads a delivery report.
  fileprivate init(_ message: UnsafePointer<rd_kafka_message_t>) {
    let response = unsafe message.pointee.err
    unsafe self.init(
      tag: DeliveryTag(word: UInt(bitPattern: message.pointee._private)),
      partition: message.pointee.partition,
      offset: message.pointee.offset,
      bytes: message.pointee.len + message.pointee.key_len,
      error: response.rawValue,
      isPossiblyPersisted: response != RD_KAFKA_RESP_ERR_NO_ERROR
        && rd_kafka_message_status(message) != RD_KAFKA_MSG_STATUS_NOT_PERSISTED)
  }
}
