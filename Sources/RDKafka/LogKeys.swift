/// The metadata keys of this target's log lines.
enum LogKeys {
  static let client = "kafka.client"
  static let connection = "kafka.connection"
  static let error = "error"
  static let event = "kafka.event"
  static let facility = "kafka.facility"
  static let group = "kafka.group"
  static let library = "kafka.librdkafka"
  static let mechanism = "kafka.mechanism"
  static let partitions = "kafka.partitions"
  static let records = "kafka.records"
  static let servers = "kafka.servers"
  static let text = "kafka.text"
  static let topic = "kafka.topic"
}
