/// The metadata keys of this target's log lines.
enum LogKeys {
  static let count = "count"
  static let error = "error"
  static let hook = "hook"
  static let partitions = "partitions"
  static let send = "send"
}
