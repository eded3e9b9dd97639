/// The metadata keys of this target's log lines.
enum LogKeys {
  static let error = "error"
  static let host = "host"
  static let port = "port"
}
