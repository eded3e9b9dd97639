import CRDKafka

extension Handle {
  /// The offsets that the group has committed; partitions without one are omitted.
  /// Blocks the thread for at most `timeoutMilliseconds`, in which it asks again while the group has no coordinator: on
  /// a new cluster the first question makes it, and after a broker's death another broker has to read the offsets.
  func committed(_ partitions: [TopicPartition], timeoutMilliseconds: Int32) throws(RDKafkaError) -> [PartitionOffset] {
    let deadline = ContinuousClock.now + .milliseconds(Int64(timeoutMilliseconds))
    while true {
      do throws(RDKafkaError) {
        let left = max(.milliseconds(1), deadline - .now)
        return try committedOnce(partitions, timeoutMilliseconds: left.timeoutMilliseconds)
      } catch {
        guard error.code == .unreachable, deadline - .now > .milliseconds(200) else { throw error }
        Pause.betweenAttempts()
      }
    }
  }

  private func committedOnce(
    _ partitions: [TopicPartition], timeoutMilliseconds: Int32
  ) throws(RDKafkaError) -> [PartitionOffset] {
    guard !partitions.isEmpty else { return [] }
    let list = try PartitionList(partitions)
    let status = unsafe rd_kafka_committed(pointer, list.pointer, timeoutMilliseconds)
    guard status == RD_KAFKA_RESP_ERR_NO_ERROR else {
      throw RDKafkaError(response: status, context: "committed offsets", waitedMilliseconds: timeoutMilliseconds)
    }
    if let error = list.firstError { throw error }
    return list.elements.map(\.offset).filter { $0.offset >= 0 }
  }

  /// The id of the cluster; nil if it has none or does not answer in time.
  /// Blocks the thread for at most `timeoutMilliseconds` until the first answer of a broker.
  func clusterID(timeoutMilliseconds: Int32) -> String? {
    guard let id = unsafe rd_kafka_clusterid(pointer, timeoutMilliseconds) else { return nil }
    defer { unsafe rd_kafka_mem_free(pointer, id) }
    return unsafe String(cString: id)
  }

  /// Commits offsets with their metadata.
  /// Blocks the thread until the broker has them, at most `timeoutMilliseconds`.
  func commit(_ offsets: [PartitionOffset], timeoutMilliseconds: Int32) throws(RDKafkaError) {
    let list = try PartitionList(offsets)
    let answers = try Queue.make(on: self)
    let status = unsafe rd_kafka_commit_queue(pointer, list.pointer, answers.pointer, nil, nil)
    guard status == RD_KAFKA_RESP_ERR_NO_ERROR else { throw RDKafkaError(response: status, context: "commit") }
    guard let event = unsafe rd_kafka_queue_poll(answers.pointer, timeoutMilliseconds) else {
      throw RDKafkaError(code: .timedOut, message: "the commit was not answered in time")
    }
    defer { unsafe rd_kafka_event_destroy(event) }
    let response = unsafe rd_kafka_event_error(event)
    guard response == RD_KAFKA_RESP_ERR_NO_ERROR else { throw RDKafkaError(response: response, context: "commit") }
    if let error = unsafe PartitionList(copying: rd_kafka_event_topic_partition_list(event))?.firstError { throw error }
  }

  /// Begins a commit whose end is not reported. Does not block.
  func beginCommit(_ offsets: [PartitionOffset]) throws(RDKafkaError) {
    let list = try PartitionList(offsets)
    let status = unsafe rd_kafka_commit(pointer, list.pointer, 1)
    guard status == RD_KAFKA_RESP_ERR_NO_ERROR else { throw RDKafkaError(response: status, context: "commit") }
  }

  /// The watermarks as of the last fetch; nil before the first one. Sends no request.
  func cachedWatermarks(_ partition: TopicPartition) -> (low: Int64, high: Int64)? {
    var (low, high): (Int64, Int64) = (-1, -1)
    let status = unsafe rd_kafka_get_watermark_offsets(pointer, partition.topic, partition.partition, &low, &high)
    guard status == RD_KAFKA_RESP_ERR_NO_ERROR, high >= 0 else { return nil }
    return (max(0, low), high)
  }

  /// The ends of a partition: its first offset and the one after its last record.
  enum End {
    case first, next
  }

  /// One end of many partitions. Blocks the thread; sends one request per broker.
  ///
  /// The look-up by time accepts the protocol's special times for the ends; a watermark query would send two requests
  /// per partition.
  func ends(_ end: End, of partitions: [TopicPartition], timeoutMilliseconds: Int32) throws(RDKafkaError)
    -> [PartitionOffset]
  {
    guard !partitions.isEmpty else { return [] }
    let time = Int64(end == .first ? RD_KAFKA_OFFSET_BEGINNING : RD_KAFKA_OFFSET_END)
    let list = try PartitionList(partitions, offset: time)
    let status = unsafe rd_kafka_offsets_for_times(pointer, list.pointer, timeoutMilliseconds)
    guard status == RD_KAFKA_RESP_ERR_NO_ERROR else {
      throw RDKafkaError(response: status, context: "offsets", waitedMilliseconds: timeoutMilliseconds)
    }
    if let error = list.firstError { throw error }
    return list.elements.map(\.offset)
  }
}

/// The topics and brokers of a cluster.
struct ClusterOverview: Sendable {
  /// The number of partitions by topic.
  var topics: [String: Int32] = [:]
  /// The smallest number of replicas of a partition by topic.
  var replicas: [String: Int] = [:]
  /// The ids of the brokers.
  var brokers: Set<Int32> = []
  /// The id of the broker that creates topics; -1 if it is unknown.
  var controller: Int32 = -1

  /// Whether topics can be created. librdkafka's mock cluster names a controller that is not one of
  /// its brokers.
  var hasController: Bool { brokers.contains(controller) }
}

extension Handle {
  /// Whether a broker answers a request for metadata. Blocks the thread for at most `timeoutMilliseconds`.
  func hasReachableBroker(timeoutMilliseconds: Int32) -> Bool {
    var found: UnsafePointer<rd_kafka_metadata>?
    // Of the topics that the client knows already: it must not cost the brokers more while they are in trouble.
    let status = unsafe rd_kafka_metadata(pointer, 0, nil, &found, timeoutMilliseconds)
    if let metadata = unsafe found { unsafe rd_kafka_metadata_destroy(metadata) }
    return status == RD_KAFKA_RESP_ERR_NO_ERROR
  }

  /// Throws the cluster's error about a topic. Blocks the thread for at most `timeoutMilliseconds`.
  /// Only a producer's request could create the topic.
  func require(_ name: String, timeoutMilliseconds: Int32) throws(RDKafkaError) {
    let topic = try TopicHandle(name: name, on: self)
    var found: UnsafePointer<rd_kafka_metadata>?
    let status = unsafe rd_kafka_metadata(pointer, 0, topic.pointer, &found, timeoutMilliseconds)
    guard status == RD_KAFKA_RESP_ERR_NO_ERROR, let metadata = unsafe found else {
      throw RDKafkaError(response: status, context: name, waitedMilliseconds: timeoutMilliseconds)
    }
    defer { unsafe rd_kafka_metadata_destroy(metadata) }
    guard let error = unsafe metadata.pointee.topics?[0].err, error != RD_KAFKA_RESP_ERR_NO_ERROR else { return }
    throw RDKafkaError(response: error, context: name)
  }

  /// Reads the metadata of all topics.
  /// Blocks the thread. Unlike a request for a topic by name, it never creates topics.
  func overview(timeoutMilliseconds: Int32) throws(RDKafkaError) -> ClusterOverview {
    var found: UnsafePointer<rd_kafka_metadata>?
    let status = unsafe rd_kafka_metadata(pointer, 1, nil, &found, timeoutMilliseconds)
    guard status == RD_KAFKA_RESP_ERR_NO_ERROR, let metadata = unsafe found else {
      throw RDKafkaError(
        response: status, context: "the cluster does not answer", waitedMilliseconds: timeoutMilliseconds)
    }
    defer { unsafe rd_kafka_metadata_destroy(metadata) }
    var overview = ClusterOverview()
    for index in 0..<Int(unsafe metadata.pointee.topic_cnt) {
      guard let topic = unsafe metadata.pointee.topics?[index] else { continue }
      let name = unsafe String(cString: topic.topic)
      overview.topics[name] = unsafe topic.partition_cnt
      for partition in 0..<Int(unsafe topic.partition_cnt) {
        guard let replicas = unsafe topic.partitions?[partition].replica_cnt else { continue }
        overview.replicas[name] = min(overview.replicas[name] ?? .max, Int(replicas))
      }
    }
    for index in 0..<Int(unsafe metadata.pointee.broker_cnt) {
      guard let broker = unsafe metadata.pointee.brokers?[index] else { continue }
      unsafe overview.brokers.insert(broker.id)
    }
    overview.controller = unsafe rd_kafka_controllerid(pointer, 0)
    return overview
  }
}
