/// The metadata keys of this target's log lines.
enum LogKeys {
  static let connection = "http2_connection"
  static let host = "http2_host"
  static let error = "error"
  static let errorCode = "http2_error_code"
  static let lastStreamID = "http2_last_stream_id"
  static let nextAttemptIn = "next_attempt_in"
  static let port = "port"
  static let streamLimit = "http2_stream_limit"
}
