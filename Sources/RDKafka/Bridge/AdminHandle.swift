import CRDKafka

/// A handle for administration. All calls block the thread.
final class AdminHandle: Sendable {
  private let handle: Handle

  /// Makes a handle; contacts no broker yet.
  init(properties: PropertySet) throws(RDKafkaError) {
    handle = try Handle(kind: .producer, properties: properties, events: 0, logsToQueue: false)
  }

  /// What the cluster is made of; see ``Handle/overview(timeoutMilliseconds:)``.
  func overview(timeoutMilliseconds: Int32) throws(RDKafkaError) -> ClusterOverview {
    try handle.overview(timeoutMilliseconds: timeoutMilliseconds)
  }

  /// Creates topics.
  ///
  /// - Returns: The broker's error number for each topic by name, 0 for none.
  /// - Throws: When the request as a whole had no answer.
  func create(_ topics: [TopicSpecification], timeoutMilliseconds: Int32) throws(RDKafkaError) -> [String: Int32] {
    var requests: [OpaquePointer?] = unsafe []
    defer { unsafe rd_kafka_NewTopic_destroy_array(&requests, requests.count) }
    for topic in topics { unsafe requests.append(unsafe try request(for: topic)) }
    let queue = try Queue.make(on: handle)
    let options = unsafe rd_kafka_AdminOptions_new(handle.pointer, RD_KAFKA_ADMIN_OP_CREATETOPICS)
    defer { unsafe rd_kafka_AdminOptions_destroy(options) }
    _ = unsafe rd_kafka_AdminOptions_set_request_timeout(options, timeoutMilliseconds, nil, 0)
    // Returns once the topics are there, not only once they have been asked for.
    _ = unsafe rd_kafka_AdminOptions_set_operation_timeout(options, timeoutMilliseconds, nil, 0)
    unsafe requests.withUnsafeMutableBufferPointer { buffer in
      unsafe rd_kafka_CreateTopics(handle.pointer, buffer.baseAddress, buffer.count, options, queue.pointer)
    }
    // A little longer than the request: its own time-out is the better message.
    guard let event = unsafe rd_kafka_queue_poll(queue.pointer, timeoutMilliseconds + 1000) else {
      throw RDKafkaError(code: .timedOut, message: "the request to create topics was not answered")
    }
    defer { unsafe rd_kafka_event_destroy(event) }
    let status = unsafe rd_kafka_event_error(event)
    guard status == RD_KAFKA_RESP_ERR_NO_ERROR, let result = unsafe rd_kafka_event_CreateTopics_result(event) else {
      throw RDKafkaError(response: status, context: "create topics")
    }
    var count = 0
    let answers = unsafe rd_kafka_CreateTopics_result_topics(result, &count)
    var errors: [String: Int32] = [:]
    for index in 0..<count {
      guard let answer = unsafe answers?[index] else { continue }
      unsafe errors[String(cString: rd_kafka_topic_result_name(answer))] = unsafe rd_kafka_topic_result_error(answer).rawValue
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
