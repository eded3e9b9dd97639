import CRDKafka
import Glibc

/// Owns one `rd_kafka_topic_partition_list_t`. Not shared between threads.
@safe final class PartitionList {
  let pointer: UnsafeMutablePointer<rd_kafka_topic_partition_list_t>

  /// Takes over `pointer`.
  init(adopting pointer: UnsafeMutablePointer<rd_kafka_topic_partition_list_t>) {
    unsafe self.pointer = unsafe pointer
  }

  /// Copies a list that belongs to an event.
  convenience init?(copying list: UnsafeMutablePointer<rd_kafka_topic_partition_list_t>?) {
    guard let list = unsafe list, let copy = unsafe rd_kafka_topic_partition_list_copy(list) else { return nil }
    unsafe self.init(adopting: copy)
  }

  /// A list of partitions with offsets and metadata; offsets are taken as they are.
  convenience init(_ offsets: [PartitionOffset]) throws(RDKafkaError) {
    guard let list = unsafe rd_kafka_topic_partition_list_new(Int32(clamping: offsets.count)) else {
      throw RDKafkaError(code: .broker, message: "librdkafka made no list")
    }
    unsafe self.init(adopting: list)
    for offset in offsets {
      guard
        let element = unsafe rd_kafka_topic_partition_list_add(list, offset.partition.topic, offset.partition.partition)
      else { continue }
      unsafe element.pointee.offset = offset.offset
      if let metadata = offset.metadata, !metadata.isEmpty {
        // librdkafka frees the copy together with the list.
        unsafe element.pointee.metadata = unsafe UnsafeMutableRawPointer(strdup(metadata))
        unsafe element.pointee.metadata_size = metadata.utf8.count
      }
    }
  }

  /// A list of partitions without offsets.
  convenience init(_ partitions: [TopicPartition], offset: Int64 = Int64(RD_KAFKA_OFFSET_INVALID)) throws(RDKafkaError)
  {
    try self.init(partitions.map { PartitionOffset(partition: $0, offset: offset) })
  }

  /// A list of topics, as a subscription is.
  convenience init(topics: [String]) throws(RDKafkaError) {
    try self.init(topics.map { TopicPartition(topic: $0, partition: -1) })
  }

  deinit {
    unsafe rd_kafka_topic_partition_list_destroy(pointer)
  }

  /// One element with librdkafka's error for it.
  struct Element {
    /// The partition and its offset.
    var offset: PartitionOffset
    /// The error of this element; nil if there is none.
    var error: RDKafkaError?
  }

  /// The elements of the list.
  var elements: [Element] {
    let count = Int(unsafe pointer.pointee.cnt)
    return (0..<count).map { index in
      let raw = unsafe pointer.pointee.elems[index]
      let partition = unsafe TopicPartition(topic: String(cString: raw.topic), partition: raw.partition)
      var metadata: String?
      if let bytes = unsafe raw.metadata, unsafe raw.metadata_size > 0 {
        metadata = unsafe String(
          decoding: UnsafeRawBufferPointer(start: bytes, count: raw.metadata_size), as: UTF8.self)
      }
      let error =
        unsafe raw.err == RD_KAFKA_RESP_ERR_NO_ERROR ? nil : RDKafkaError(response: raw.err, context: "\(partition)")
      return unsafe Element(
        offset: PartitionOffset(partition: partition, offset: raw.offset, metadata: metadata), error: error)
    }
  }

  /// The partitions in the list.
  var partitions: [TopicPartition] {
    elements.map(\.offset.partition)
  }

  /// The first error of an element.
  var firstError: RDKafkaError? {
    elements.lazy.compactMap(\.error).first
  }
}
