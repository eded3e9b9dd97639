/// Something that the audit found wrong.
struct AuditProblem: Encodable, Equatable {
  /// What is wrong.
  enum Kind: String, Encodable, CaseIterable {
    /// An accepted send that has not ended, and of which nothing waits any more. The place is its record's.
    case lost
    /// The same of a send that lies in the dead-letter topic, and has no status record that says so.
    case deadLetterWithoutStatus
    /// A status record of a send that was never accepted. The place is the status record's.
    case unannounced
    /// A record that could not be read, and is not in the dead-letter topic either.
    case notSetAside
    /// A record of the status or the dead-letter topic that cannot be read.
    case unreadable
    /// Records that the cluster has deleted before anybody had read them. The place is the first one's.
    case deletedUnread
  }

  let kind: Kind
  /// The send's id; nil where the problem is not one of a send.
  let id: String?
  /// The send's hub; nil where the problem is not one of a send.
  let hub: String?
  let topic: String
  let partition: Int32
  let offset: Int64
}
