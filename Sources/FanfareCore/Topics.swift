/// The names of the topics, all under one prefix.
package struct Topics: Hashable, Sendable {
  /// What every name begins with, before the dot.
  package let prefix: String

  /// Send requests, keyed by username tag, or by the send's id where there is no single user.
  package let sends: String
  /// What happened, keyed by the send's id.
  package let status: String
  /// What cannot be processed, keyed as it was.
  package let deadLetter: String

  /// The topics of a deployment; `fanfare` unless configured otherwise.
  package init(prefix: String = "fanfare") {
    self.prefix = prefix
    sends = prefix + ".sends"
    status = prefix + ".status"
    deadLetter = prefix + ".dead-letter"
  }

  /// Every topic there is, for `fanfare topics create`.
  package var all: [String] { [sends, status, deadLetter] }
}
