/// The metadata keys of this target's log lines.
enum LogKeys {
  static let address = "address"
  static let count = "count"
  static let error = "error"
  static let file = "file"
  static let hook = "hook"
  static let hub = "hub"
  static let key = "key"
  static let listener = "listener"
  static let platform = "platform"
  static let service = "service"
  static let signal = "signal"
  static let topic = "topic"
  static let waitingFor = "waitingFor"
}
