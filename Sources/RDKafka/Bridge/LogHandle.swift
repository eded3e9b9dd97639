import CRDKafka

/// A handle that reads partitions from given offsets: it joins no group and commits nothing.
final class LogHandle: Sendable {
  /// The handle itself.
  let handle: Handle
  /// Wakes whoever waits for records.
  let wakeUp: WakeUp
  /// Where the records of all partitions wait.
  let records: Queue

  /// Makes a handle and begins to read. Contacts no broker before it returns.
  init(properties: PropertySet, from starts: [PartitionOffset]) throws(RDKafkaError) {
    handle = try Handle(kind: .consumer, properties: properties, events: 0, logsToQueue: false)
    wakeUp = try WakeUp()
    records = try Queue.make(on: handle, wakeUp: wakeUp)
    for start in starts {
      guard
        let queue = unsafe rd_kafka_queue_get_partition(
          handle.pointer, start.partition.topic, start.partition.partition)
      else { continue }
      unsafe rd_kafka_queue_forward(queue, records.pointer)
      unsafe rd_kafka_queue_destroy(queue)
    }
    let list = try PartitionList(starts)
    let status = unsafe rd_kafka_assign(handle.pointer, list.pointer)
    guard status == RD_KAFKA_RESP_ERR_NO_ERROR else { throw RDKafkaError(response: status, context: "assign") }
  }

  /// Fetches no more of these partitions.
  func stop(_ partitions: [TopicPartition]) throws(RDKafkaError) {
    let list = try PartitionList(partitions)
    let status = unsafe rd_kafka_pause_partitions(handle.pointer, list.pointer)
    guard status == RD_KAFKA_RESP_ERR_NO_ERROR else { throw RDKafkaError(response: status, context: "pause") }
  }
}
