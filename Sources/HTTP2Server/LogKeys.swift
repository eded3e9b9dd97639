/// The metadata keys of this target's log lines.
enum LogKeys {
  /// What went wrong.
  static let error = "error"
  /// The port a server listens on.
  static let port = "port"
}
