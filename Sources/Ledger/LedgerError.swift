/// A failure of a ledger's store or consumer. Contains no stored data.
package struct LedgerError: Error, Hashable, Sendable, CustomStringConvertible {
  /// The kind of failure.
  package struct Code: Hashable, Sendable {
    private enum Wrapped { case notThere, unusable, unusableDatabase, unavailable, consumer }
    private let wrapped: Wrapped

    /// For readers: there is no ledger yet, because none was started or its tables are being created.
    package static let notThere = Self(wrapped: .notThere)
    /// The file is not a ledger, is from a later release, is damaged, or cannot be created or written. Retrying does
    /// not help: the path, its permissions or the release have to change.
    package static let unusable = Self(wrapped: .unusable)
    /// The database refuses the user, or the tables cannot be created or belong to something else. Retrying does not
    /// help: the connection, the permissions or the release have to change.
    package static let unusableDatabase = Self(wrapped: .unusableDatabase)
    /// A lock was held for too long, or the disk or the database failed; a retry may succeed.
    package static let unavailable = Self(wrapped: .unavailable)
    /// The consumer has ended by itself; the process has to be restarted.
    package static let consumer = Self(wrapped: .consumer)
  }

  package let code: Code
  package let message: String

  package init(_ code: Code, _ message: String) {
    self.code = code
    self.message = message
  }

  package var description: String { message }
}
