/// The metadata keys of this target's log lines.
enum LogKeys {
  static let error = "error"
  static let group = "kafka.group"
  static let records = "kafka.records"
  static let servers = "kafka.servers"
  static let topic = "kafka.topic"
}
