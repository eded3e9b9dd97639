/// The names of the metadata that the front end's log lines carry.
enum LogKeys {
  /// The id that the request came with or was given.
  static let requestID = "request.id"
  /// A refusal's stable word.
  static let code = "problem.code"
  /// A refusal's explanation.
  static let detail = "problem.detail"
  /// The error below a refusal.
  static let cause = "error"
  /// The hub concerned.
  static let hub = "hub"
  /// The send concerned.
  static let send = "send.id"
  /// The secure payload concerned.
  static let securePayload = "secure.id"
  /// A file on disk.
  static let path = "path"
  /// How many.
  static let count = "count"
  /// The address that is listened on.
  static let address = "address"
}
