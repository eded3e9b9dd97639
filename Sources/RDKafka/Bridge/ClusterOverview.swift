import CRDKafka

/// What a cluster is made of.
struct ClusterOverview: Sendable {
  /// Partitions by topic.
  var topics: [String: Int32] = [:]
  /// The brokers' numbers.
  var brokers: Set<Int32> = []
  /// The number of the broker that creates topics, -1 if none is known.
  var controller: Int32 = -1

  /// Whether there is somebody to create topics. The embedded cluster names a controller that is none of its brokers.
  var hasController: Bool {
    brokers.contains(controller)
  }
}

extension Handle {
  /// Asks for everything there is, blocking the thread; unlike asking for one topic by name it never creates it.
  func overview(timeoutMilliseconds: Int32) throws(RDKafkaError) -> ClusterOverview {
    var found: UnsafePointer<rd_kafka_metadata>?
    let status = unsafe rd_kafka_metadata(pointer, 1, nil, &found, timeoutMilliseconds)
    guard status == RD_KAFKA_RESP_ERR_NO_ERROR, let metadata = unsafe found else {
      throw RDKafkaError(response: status, context: "the cluster does not answer")
    }
    defer { unsafe rd_kafka_metadata_destroy(metadata) }
    var overview = ClusterOverview()
    for index in 0..<Int(unsafe metadata.pointee.topic_cnt) {
      guard let topic = unsafe metadata.pointee.topics?[index] else { continue }
      unsafe overview.topics[String(cString: topic.topic)] = topic.partition_cnt
    }
    for index in 0..<Int(unsafe metadata.pointee.broker_cnt) {
      guard let broker = unsafe metadata.pointee.brokers?[index] else { continue }
      unsafe overview.brokers.insert(broker.id)
    }
    overview.controller = unsafe rd_kafka_controllerid(pointer, 0)
    return overview
  }
}
