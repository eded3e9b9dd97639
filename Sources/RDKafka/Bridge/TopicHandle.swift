import CRDKafka

/// Owns one `rd_kafka_topic_t`, and keeps its handle alive.
///
/// Unchecked: the pointer never changes, and librdkafka's functions on it may be called from any thread.
@safe final class TopicHandle: @unchecked Sendable {
  /// The handle it belongs to.
  let handle: Handle
  /// The pointer for librdkafka's functions.
  let pointer: OpaquePointer

  /// Makes the topic known to librdkafka without contacting a broker.
  init(name: String, on handle: Handle) throws(RDKafkaError) {
    let configuration = unsafe rd_kafka_default_topic_conf_dup(handle.pointer)
    unsafe rd_kafka_topic_conf_set_partitioner_cb(configuration, Self.place)
    // Takes over the configuration, even on failure.
    guard let pointer = unsafe rd_kafka_topic_new(handle.pointer, name, configuration) else {
      throw RDKafkaError(response: rd_kafka_last_error(), context: name)
    }
    self.handle = handle
    unsafe self.pointer = unsafe pointer
  }

  deinit {
    unsafe rd_kafka_topic_destroy(pointer)
  }

  /// Chooses the partition of a record whose message has a ``DeliveryTag``'s word as its opaque.
  /// Only a partitioner always knows the number of partitions. Called on any thread, possibly more than once for a
  /// record.
  private static let place:
    @convention(c) (OpaquePointer?, UnsafeRawPointer?, Int, Int32, UnsafeMutableRawPointer?, UnsafeMutableRawPointer?)
      -> Int32 =
      {
        if let partition = DeliveryTag(word: UInt(bitPattern: $5)).partition { return partition % $3 }
        // librdkafka's default (CRC32) maps a key to another partition than Java's clients do. A partitioner must not
        // call librdkafka's functions, except for those that are partitioners themselves.
        return unsafe rd_kafka_msg_partitioner_murmur2_random($0, $1, $2, $3, nil, nil)
      }

  /// Asks the brokers for the topic's partitions and waits for the answer, blocking the thread.
  ///
  /// - Returns: The number of partitions.
  func partitionCount(timeoutMilliseconds: Int32) throws(RDKafkaError) -> Int32 {
    var found: UnsafePointer<rd_kafka_metadata>?
    let name = unsafe String(cString: rd_kafka_topic_name(pointer))
    let status = unsafe rd_kafka_metadata(handle.pointer, 0, pointer, &found, timeoutMilliseconds)
    guard status == RD_KAFKA_RESP_ERR_NO_ERROR, let metadata = unsafe found else {
      throw RDKafkaError(response: status, context: name)
    }
    defer { unsafe rd_kafka_metadata_destroy(metadata) }
    guard unsafe metadata.pointee.topic_cnt == 1, let topic = unsafe metadata.pointee.topics?.pointee else {
      throw RDKafkaError(response: RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART, context: name)
    }
    guard unsafe topic.err == RD_KAFKA_RESP_ERR_NO_ERROR else {
      throw unsafe RDKafkaError(response: topic.err, context: name)
    }
    return unsafe topic.partition_cnt
  }
}
