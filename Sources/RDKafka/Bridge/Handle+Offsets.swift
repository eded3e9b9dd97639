import CRDKafka

extension Handle {
  /// The offsets the group has committed, blocking the thread for at most `timeoutMilliseconds`. Partitions without one
  /// are not in the result.
  func committed(_ partitions: [TopicPartition], timeoutMilliseconds: Int32) throws(RDKafkaError) -> [PartitionOffset] {
    guard !partitions.isEmpty else { return [] }
    let list = try PartitionList(partitions)
    let status = unsafe rd_kafka_committed(pointer, list.pointer, timeoutMilliseconds)
    guard status == RD_KAFKA_RESP_ERR_NO_ERROR else {
      throw RDKafkaError(response: status, context: "committed offsets")
    }
    if let error = list.firstError { throw error }
    return list.elements.map(\.offset).filter { $0.offset >= 0 }
  }

  /// Commits offsets with their metadata, blocking the thread until the broker has them, for at most
  /// `timeoutMilliseconds`.
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

  /// The watermarks as of the last fetch, if there was one; asks nobody.
  func cachedWatermarks(_ partition: TopicPartition) -> (low: Int64, high: Int64)? {
    var (low, high): (Int64, Int64) = (-1, -1)
    let status = unsafe rd_kafka_get_watermark_offsets(pointer, partition.topic, partition.partition, &low, &high)
    guard status == RD_KAFKA_RESP_ERR_NO_ERROR, high >= 0 else { return nil }
    return (max(0, low), high)
  }

  /// Which end of a partition to look up.
  enum End {
    case first, next
  }

  /// One end of many partitions with one request per broker, blocking the thread. (The watermark query takes two
  /// requests per partition; the lookup by time accepts the protocol's special times for the two ends.)
  func ends(_ end: End, of partitions: [TopicPartition], timeoutMilliseconds: Int32) throws(RDKafkaError)
    -> [PartitionOffset]
  {
    guard !partitions.isEmpty else { return [] }
    let time = Int64(end == .first ? RD_KAFKA_OFFSET_BEGINNING : RD_KAFKA_OFFSET_END)
    let list = try PartitionList(partitions, offset: time)
    let status = unsafe rd_kafka_offsets_for_times(pointer, list.pointer, timeoutMilliseconds)
    guard status == RD_KAFKA_RESP_ERR_NO_ERROR else { throw RDKafkaError(response: status, context: "offsets") }
    if let error = list.firstError { throw error }
    return list.elements.map(\.offset)
  }
}
