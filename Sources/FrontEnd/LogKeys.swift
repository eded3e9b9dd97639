/// The metadata keys of the front end's log lines.
enum LogKeys {
  /// The id that a request came with or was given.
  static let requestID = "request.id"
  /// A refusal's code.
  static let code = "problem.code"
  /// A refusal's detail.
  static let detail = "problem.detail"
  /// The underlying error.
  static let cause = "error"
  static let hub = "hub"
  static let send = "send.id"
  static let securePayload = "secure.id"
  /// The path of a file.
  static let path = "path"
  static let count = "count"
}
