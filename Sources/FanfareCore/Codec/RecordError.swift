/// Why a topic record cannot be used. Names the field, never its value.
package struct RecordError: Error, Hashable, Sendable, CustomStringConvertible {
  /// What the dead-letter topic is to say.
  package let reason: DeadLetter.Reason
  /// What exactly is wrong.
  package let detail: String

  package init(_ reason: DeadLetter.Reason, _ detail: String) {
    self.reason = reason
    self.detail = detail
  }

  /// The record's data cannot be used.
  init(inData error: JSONError) {
    self.init(.undecodable, error.field.isEmpty ? "data \(error.problem)" : "data.\(error.description)")
  }

  package var description: String { detail }
}
