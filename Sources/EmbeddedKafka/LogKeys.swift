/// The metadata keys of this target's log lines.
enum LogKeys {
  static let servers = "kafka.servers"
}
