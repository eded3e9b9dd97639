/// The metadata keys of this target's log lines.
enum LogKeys {
  static let error = "error"
  static let failures = "postgresql.failures"
  static let reason = "postgresql.reason"
}
