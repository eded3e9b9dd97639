import CRDKafka

/// A handle for administration. All calls block the thread.
final class AdminHandle: Sendable {
  let handle: Handle

  /// Creates a handle without contacting a broker.
  init(properties: PropertySet) throws(RDKafkaError) {
    handle = try Handle(kind: .producer, properties: properties, events: 0, logsToQueue: false)
  }

  /// The topics and brokers of the cluster; see ``Handle/overview(timeoutMilliseconds:)``.
  func overview(timeoutMilliseconds: Int32) throws(RDKafkaError) -> ClusterOverview {
    try handle.overview(timeoutMilliseconds: timeoutMilliseconds)
  }

  /// Creates topics.
  ///
  /// - Returns: The broker's error number for each topic by name, 0 for none.
  /// - Throws: When the request as a whole got no answer.
  func create(_ topics: [TopicSpecification], timeoutMilliseconds: Int32) throws(RDKafkaError) -> [String: Int32] {
    var requests: [OpaquePointer?] = unsafe []
    defer { unsafe rd_kafka_NewTopic_destroy_array(&requests, requests.count) }
    for topic in topics { unsafe requests.append(unsafe try request(for: topic)) }
    let event = unsafe try answer(RD_KAFKA_ADMIN_OP_CREATETOPICS, "create topics", timeoutMilliseconds) {
      options, queue in
      unsafe requests.withUnsafeMutableBufferPointer { buffer in
        unsafe rd_kafka_CreateTopics(handle.pointer, buffer.baseAddress, buffer.count, options, queue)
      }
    }
    defer { unsafe rd_kafka_event_destroy(event) }
    var count = 0
    return unsafe Self.errors(
      rd_kafka_CreateTopics_result_topics(rd_kafka_event_CreateTopics_result(event), &count), count)
  }

  /// Deletes topics with all their records.
  ///
  /// - Returns: The broker's error number for each topic by name, 0 for none.
  /// - Throws: When the request as a whole got no answer.
  func delete(_ topics: [String], timeoutMilliseconds: Int32) throws(RDKafkaError) -> [String: Int32] {
    var requests: [OpaquePointer?] = unsafe topics.map { unsafe rd_kafka_DeleteTopic_new($0) }
    defer { unsafe rd_kafka_DeleteTopic_destroy_array(&requests, requests.count) }
    let event = unsafe try answer(RD_KAFKA_ADMIN_OP_DELETETOPICS, "delete topics", timeoutMilliseconds) {
      options, queue in
      unsafe requests.withUnsafeMutableBufferPointer { buffer in
        unsafe rd_kafka_DeleteTopics(handle.pointer, buffer.baseAddress, buffer.count, options, queue)
      }
    }
    defer { unsafe rd_kafka_event_destroy(event) }
    var count = 0
    return unsafe Self.errors(
      rd_kafka_DeleteTopics_result_topics(rd_kafka_event_DeleteTopics_result(event), &count), count)
  }

  /// The event with the answer to a request, which the caller destroys. Throws if there was none.
  func answer(
    _ operation: rd_kafka_admin_op_t, _ what: String, _ timeoutMilliseconds: Int32,
    _ ask: (_ options: OpaquePointer?, _ queue: OpaquePointer) -> Void
  ) throws(RDKafkaError) -> OpaquePointer {
    let queue = try Queue.make(on: handle)
    let options = unsafe rd_kafka_AdminOptions_new(handle.pointer, operation)
    defer { unsafe rd_kafka_AdminOptions_destroy(options) }
    _ = unsafe rd_kafka_AdminOptions_set_request_timeout(options, timeoutMilliseconds, nil, 0)
    // The broker answers when the operation has ended, not when it has begun.
    _ = unsafe rd_kafka_AdminOptions_set_operation_timeout(options, timeoutMilliseconds, nil, 0)
    unsafe ask(options, queue.pointer)
    // A little longer than the request, whose own time-out has the better message.
    guard let event = unsafe rd_kafka_queue_poll(queue.pointer, timeoutMilliseconds + 1000) else {
      throw RDKafkaError(code: .timedOut, message: "the request to \(what) was not answered")
    }
    let status = unsafe rd_kafka_event_error(event)
    guard status == RD_KAFKA_RESP_ERR_NO_ERROR else {
      unsafe rd_kafka_event_destroy(event)
      throw RDKafkaError(response: status, context: what)
    }
    return unsafe event
  }

  private static func errors(_ answers: UnsafeMutablePointer<OpaquePointer?>?, _ count: Int) -> [String: Int32] {
    var errors: [String: Int32] = [:]
    for index in 0..<count {
      guard let answer = unsafe answers?[index] else { continue }
      unsafe errors[String(cString: rd_kafka_topic_result_name(answer))] = unsafe rd_kafka_topic_result_error(answer)
        .rawValue
    }
    return errors
  }

  private func request(for topic: TopicSpecification) throws(RDKafkaError) -> OpaquePointer {
    var text = [CChar](repeating: 0, count: 512)
    guard
      let request = unsafe rd_kafka_NewTopic_new(
        topic.name, topic.partitions, Int32(topic.replicationFactor), &text, text.count)
    else { throw RDKafkaError(code: .configuration, message: "topic '\(topic.name)': \(Handle.string(text))") }
    for (key, value) in topic.configuration {
      let status = unsafe rd_kafka_NewTopic_set_config(request, key, value)
      if status != RD_KAFKA_RESP_ERR_NO_ERROR {
        unsafe rd_kafka_NewTopic_destroy(request)
        throw RDKafkaError(response: status, context: "topic '\(topic.name)', '\(key)'")
      }
    }
    return unsafe request
  }
}
