package import FanfareCore

/// An operator's note that a problem of the audit at a place in the log is known.
package struct Acknowledgement: Sendable, Hashable {
  /// The most characters of a reason.
  package static let maximumReasonLength = 500

  package let topic: String
  package let partition: Int32
  package let offset: Int64
  package let reason: String
  package let at: UnixTime

  package init(topic: String, partition: Int32, offset: Int64, reason: String, at: UnixTime) {
    (self.topic, self.partition, self.offset) = (topic, partition, offset)
    (self.reason, self.at) = (reason, at)
  }
}

/// Keeps acknowledgements in the ledger's database.
package protocol AcknowledgementStore: Sendable {
  /// All of them, in no particular order. Throws `LedgerError`, with `notThere` if there is no ledger yet.
  func acknowledgements() async throws -> [Acknowledgement]

  /// Keeps one, instead of an earlier one of the same place. Creates the ledger if necessary. Throws `LedgerError`.
  func acknowledge(_ acknowledgement: Acknowledgement) async throws
}
