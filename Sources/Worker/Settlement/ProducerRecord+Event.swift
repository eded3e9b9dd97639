import FanfareCore
package import RDKafka

extension ProducerRecord {
  // One for all records: each refers to it.
  private static let eventHeaders = [RecordHeader(name: "content-type", text: CloudEvent.contentType)]

  /// A record whose value is a CloudEvent in JSON, and whose header says so.
  package init(topic: String, partition: Int32? = nil, key: [UInt8]?, event: [UInt8]) {
    self.init(topic: topic, partition: partition, key: key, value: event, headers: Self.eventHeaders)
  }
}
