/// The metadata keys of this target's log lines.
enum LogKeys {
  /// The number of a pool's connection.
  static let connection = "http2_connection"
  /// The host a pool connects to.
  static let host = "http2_host"
  static let error = "error"
  /// The code of a GOAWAY frame.
  static let errorCode = "http2_error_code"
  /// The last stream a GOAWAY frame covers.
  static let lastStreamID = "http2_last_stream_id"
  /// The pause before the next connection.
  static let nextAttemptIn = "next_attempt_in"
  /// The peer's limit of concurrent streams.
  static let streamLimit = "http2_stream_limit"
  static let port = "port"
}
