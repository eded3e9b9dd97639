import CRDKafka
import Glibc

/// The leader epoch of a message, which librdkafka reports from 2.1 on.
enum LeaderEpoch {
  private typealias Function = @convention(c) (UnsafePointer<rd_kafka_message_t>) -> Int32

  /// Looked up in the linked library, because the headers may be older.
  private static let function: Function? = unsafe dlsym(nil, "rd_kafka_message_leader_epoch").map {
    unsafe unsafeBitCast($0, to: Function.self)
  }

  /// The epoch; -1 if it is unknown.
  static func of(_ message: UnsafeMutablePointer<rd_kafka_message_t>) -> Int32 {
    unsafe function.map { unsafe $0(message) } ?? -1
  }
}

/// Takes records out of librdkafka in batches. Belongs to the consumer's thread alone.
///
/// A message pins the whole response that contained it, which may be megabytes. So everything is copied out at once and
/// freed.
@safe final class RecordReader {
  /// The result of taking records.
  struct Taken {
    /// The records of owned partitions, in order; each batch shares one array of bytes.
    var batches: [[ConsumedRecord]] = []
    /// Records in `batches`.
    var count = 0
    /// Bytes of their keys and values.
    var bytes = 0
    /// Messages taken from librdkafka, including errors and records of partitions that are no
    /// longer owned.
    var popped = 0
    /// Errors of single partitions.
    var errors: [RDKafkaError] = []
    /// The partitions read to their end, with that offset; only for clients that ask for it.
    var ends: [PartitionOffset] = []
  }

  private typealias Message = UnsafeMutablePointer<rd_kafka_message_t>

  /// Messages taken at a time.
  static let capacity = 1024
  /// Bytes in one batch's array, unless one record alone is larger.
  /// It bounds the memory that a long-lived record keeps alive.
  private static let bytesPerBatch = 1024 * 1024

  let queue: Queue
  private let readsHeaders: Bool
  private let messages: UnsafeMutableBufferPointer<Message?>
  private var owned: Set<TopicPartition> = []
  /// Names of the topics by librdkafka's address of them.
  /// Forgotten at every rebalance, because an address may be reused.
  private var topics: [OpaquePointer: String] = unsafe [:]
  /// The headers of the previous record, usually equal to those of the next one.
  private var lastHeaders: [RecordHeader] = []

  /// Makes a reader of one queue.
  init(queue: Queue, readsHeaders: Bool) {
    self.queue = queue
    self.readsHeaders = readsHeaders
    unsafe messages = .allocate(capacity: Self.capacity)
    unsafe messages.initialize(repeating: nil)
  }

  deinit {
    unsafe messages.deallocate()
  }

  /// Begins to return records of these partitions.
  func own(_ partitions: [TopicPartition]) {
    unsafe topics.removeAll()
    owned.formUnion(partitions)
  }

  /// Begins to drop records of these partitions, because another member will read them.
  func disown(_ partitions: [TopicPartition]) {
    unsafe topics.removeAll()
    owned.subtract(partitions)
  }

  /// Takes the available records without waiting, at most `limit`.
  func take(limit: Int) -> Taken {
    var taken = Taken()
    // With a timeout librdkafka would wait for all of it unless the buffer fills up.
    let popped = unsafe rd_kafka_consume_batch_queue(
      queue.pointer, 0, messages.baseAddress, min(limit, Self.capacity))
    guard popped > 0 else { return taken }
    taken.popped = popped
    let count = sieve(popped, &taken)
    var start = 0
    while start < count {
      var (end, bytes) = (start, 0)
      while end < count {
        let next = bytes + size(end)
        if end > start, next > Self.bytesPerBatch { break }
        (end, bytes) = (end + 1, next)
      }
      taken.batches.append(copyOut(start..<end, bytes: bytes))
      taken.bytes += bytes
      start = end
    }
    taken.count = count
    for index in 0..<count { unsafe rd_kafka_message_destroy(messages[index]) }
    return taken
  }

  /// Moves the records of owned partitions to the front and frees everything else.
  ///
  /// - Returns: The number of records.
  private func sieve(_ popped: Int, _ taken: inout Taken) -> Int {
    var count = 0
    var last: (topic: OpaquePointer?, partition: Int32, isOwned: Bool) = (nil, -1, false)
    for index in 0..<popped {
      guard let message = unsafe messages[index] else { continue }
      let (topic, partition) = unsafe (message.pointee.rkt, message.pointee.partition)
      if unsafe message.pointee.err != RD_KAFKA_RESP_ERR_NO_ERROR {
        let name = unsafe TopicPartition(topic: self.name(of: topic), partition: partition)
        if unsafe message.pointee.err == RD_KAFKA_RESP_ERR__PARTITION_EOF {
          unsafe taken.ends.append(PartitionOffset(partition: name, offset: message.pointee.offset))
        } else {
          taken.errors.append(unsafe RDKafkaError(response: message.pointee.err, context: "\(name)"))
        }
        unsafe rd_kafka_message_destroy(message)
        continue
      }
      if unsafe topic != last.topic || partition != last.partition {
        let isOwned = unsafe owned.contains(TopicPartition(topic: name(of: topic), partition: partition))
        unsafe last = unsafe (topic, partition, isOwned)
      }
      if unsafe last.isOwned {
        unsafe messages[count] = unsafe message
        count += 1
      } else {
        unsafe rd_kafka_message_destroy(message)
      }
    }
    return count
  }

  private func size(_ index: Int) -> Int {
    guard let message = unsafe messages[index]?.pointee else { return 0 }
    return unsafe message.key_len + message.len
  }

  /// Copies the messages into records that share one array.
  private func copyOut(_ range: Range<Int>, bytes: Int) -> [ConsumedRecord] {
    let backing = unsafe [UInt8](unsafeUninitializedCapacity: bytes) { buffer, initialized in
      var offset = 0
      for index in range {
        guard let message = unsafe messages[index]?.pointee, let base = buffer.baseAddress else { continue }
        if let key = unsafe message.key { unsafe memcpy(base + offset, key, message.key_len) }
        unsafe offset += message.key_len
        if let value = unsafe message.payload { unsafe memcpy(base + offset, value, message.len) }
        unsafe offset += message.len
      }
      initialized = offset
    }
    var records: [ConsumedRecord] = []
    records.reserveCapacity(range.count)
    var offset = 0
    var last: (topic: OpaquePointer?, name: String) = (nil, "")
    for index in range {
      guard let message = unsafe messages[index] else { continue }
      let (topic, keyEnd) = unsafe (message.pointee.rkt, offset + message.pointee.key_len)
      let valueEnd = unsafe keyEnd + message.pointee.len
      if unsafe topic != last.topic { unsafe last = unsafe (topic, name(of: topic)) }
      var timestampType = RD_KAFKA_TIMESTAMP_NOT_AVAILABLE
      unsafe records.append(
        ConsumedRecord(
          topic: last.name,
          partition: message.pointee.partition,
          offset: message.pointee.offset,
          timestamp: rd_kafka_message_timestamp(message, &timestampType),
          key: message.pointee.key == nil ? nil : backing[offset..<keyEnd],
          value: backing[keyEnd..<valueEnd],
          headers: readsHeaders ? headers(of: message) : [],
          leaderEpoch: LeaderEpoch.of(message)))
      offset = valueEnd
    }
    return records
  }

  private func name(of topic: OpaquePointer?) -> String {
    guard let topic = unsafe topic else { return "" }
    if let name = unsafe topics[topic] { return name }
    let name = unsafe String(cString: rd_kafka_topic_name(topic))
    unsafe topics[topic] = name
    return name
  }

  /// The message's headers; if they equal the previous record's, those, so that equal headers cost
  /// no allocation.
  private func headers(of message: Message) -> [RecordHeader] {
    var list: OpaquePointer?
    guard unsafe rd_kafka_message_headers(message, &list) == RD_KAFKA_RESP_ERR_NO_ERROR, let list = unsafe list else {
      return []
    }
    let count = unsafe rd_kafka_header_cnt(list)
    if count == lastHeaders.count, lastHeaders.indices.allSatisfy({ unsafe isLastHeader($0, in: list) }) {
      return lastHeaders
    }
    lastHeaders = (0..<count).compactMap { index in
      guard let (name, value) = unsafe header(index, in: list) else { return nil }
      return unsafe RecordHeader(name: String(cString: name), value: Array(value))
    }
    return lastHeaders
  }

  private func isLastHeader(_ index: Int, in list: OpaquePointer) -> Bool {
    guard let (name, value) = unsafe header(index, in: list) else { return false }
    let known = lastHeaders[index]
    guard known.value.count == value.count, unsafe strcmp(name, known.name) == 0 else { return false }
    return unsafe known.value.elementsEqual(value)
  }

  private func header(
    _ index: Int, in list: OpaquePointer
  ) -> (name: UnsafePointer<CChar>, value: UnsafeRawBufferPointer)? {
    var name: UnsafePointer<CChar>?
    var value: UnsafeRawPointer?
    var size = 0
    guard unsafe rd_kafka_header_get_all(list, index, &name, &value, &size) == RD_KAFKA_RESP_ERR_NO_ERROR,
      let name = unsafe name
    else { return nil }
    return unsafe (name, UnsafeRawBufferPointer(start: value, count: value == nil ? 0 : size))
  }
}
