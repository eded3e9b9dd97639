/// The metadata keys of the worker's log lines.
/// Their values never hold a handle, a payload, a user or a tag.
enum LogKeys {
  static let send = "send"
  static let hub = "hub"
  static let platform = "platform"
  static let reason = "reason"
  static let detail = "detail"
  static let topic = "topic"
  static let partition = "partition"
  static let partitions = "partitions"
  static let offset = "offset"
  static let error = "error"
  static let count = "count"
}
