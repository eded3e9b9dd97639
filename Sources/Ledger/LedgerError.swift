import FanfareCore
import Store

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

extension LedgerError {
  /// Runs a block on a ledger's store. Throws its errors as ledger errors, except those of the caller's own reads.
  static func describing<Value>(_ body: () async throws -> Value) async throws -> Value {
    do { return try await body() } catch let error as TooManyReads where error.hasCaller { throw error } catch {
      throw LedgerError(describing: error)
    }
  }

  /// Describes an error of a store. SQLite's message is left out, because it may contain stored data; its code does
  /// not.
  init(describing error: any Error) {
    switch error {
    case let error as LedgerError: self = error
    case let error as StoreError where error == .mismatch: self = SendRow.damaged
    case let error as StoreError:
      self.init(
        error.code == .unusable ? .unusable : error.code == .unmigrated ? .notThere : .unavailable, error.message)
    case _ where Store.isDamage(error):
      self.init(.unusable, "the ledger's file is damaged: \(Store.reason(of: error))")
    // No such table; no such column.
    case let error as PostgreSQLError where ["42P01", "42703"].contains(error.sqlState):
      self.init(.notThere, "the ledger's tables have not been created or migrated yet")
    case let error as PostgreSQLError where error.code == .configuration || error.code == .programming:
      self.init(.unusableDatabase, "the ledger's database cannot be used: \(error)")
    default: self.init(.unavailable, "the ledger cannot be used now: \(Store.reason(of: error))")
    }
  }
}
