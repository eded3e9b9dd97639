/// The metadata keys of this target's log lines.
enum LogKeys {
  static let hub = "hub"
  static let platform = "platform"
  static let host = "host"
  static let status = "status"
  static let reason = "reason"
  static let error = "error"
}
