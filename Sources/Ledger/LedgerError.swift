/// Why the ledger cannot do what it is asked now. Contains nothing of what is stored.
package struct LedgerError: Error, Hashable, Sendable, CustomStringConvertible {
  /// What kind of failure it is.
  package struct Code: Hashable, Sendable {
    private enum Wrapped { case notThere, unusable, unusableDatabase, unavailable, consumer }
    private let wrapped: Wrapped

    /// There is no ledger at that path yet: none has been started, or its tables are being made. For readers.
    package static let notThere = Self(wrapped: .notThere)
    /// The file is no ledger, one of a later release, or cannot be made or written at all: nothing helps but another
    /// file, other rights, or another release.
    package static let unusable = Self(wrapped: .unusable)
    /// The database does not take the user, or its tables cannot be made or are something else's: nothing helps but
    /// another connection, other rights, or another release.
    package static let unusableDatabase = Self(wrapped: .unusableDatabase)
    /// The file is locked for too long, or the disk fails; the same may succeed later.
    package static let unavailable = Self(wrapped: .unavailable)
    /// The consumer has ended by itself; the process must be started again.
    package static let consumer = Self(wrapped: .consumer)
  }

  package let code: Code
  /// For people.
  package let message: String

  package init(_ code: Code, _ message: String) {
    self.code = code
    self.message = message
  }

  package var description: String { message }
}
