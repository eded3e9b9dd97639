/// The keys of log metadata.
enum LogKeys {
  static let attempt = "attempt"
  static let error = "error"
  static let partitions = "partitions"
  static let records = "records"
  static let topic = "topic"
}
