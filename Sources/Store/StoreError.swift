/// A failure of a store that is not an error of one of its engines.
///
/// The message is a sentence without stored values.
package struct StoreError: Error, Hashable, Sendable, CustomStringConvertible {
  /// The kinds of errors. A struct, so that a new kind does not break a caller's switch.
  package struct Code: Hashable, Sendable {
    private enum Value { case busy, displaced, full, readOnly, overtaken, mismatch, unmigrated, unusable }

    private let value: Value

    /// The change waited for others for too long: the same call can succeed later.
    package static let busy = Self(value: .busy)
    /// The store's file was deleted or replaced.
    package static let displaced = Self(value: .displaced)
    /// The disk of the store's file is full.
    package static let full = Self(value: .full)
    /// The database takes no changes.
    package static let readOnly = Self(value: .readOnly)
    /// Another transaction changed the rows first, each time it was tried.
    package static let overtaken = Self(value: .overtaken)
    /// A column holds another type than expected, or NULL.
    package static let mismatch = Self(value: .mismatch)
    /// The tables of a file that is only read have not been created or migrated yet.
    package static let unmigrated = Self(value: .unmigrated)
    /// The file is not this store's, or was made by a later release: it can never be used.
    package static let unusable = Self(value: .unusable)
  }

  package let code: Code
  package let message: String

  package init(_ code: Code, _ message: String) {
    self.code = code
    self.message = message
  }

  /// Thrown by a block of `Store.write` that finds its rows changed by another transaction, or a row gone that it has
  /// just made: the store runs the block again.
  package static let overtaken = Self(.overtaken, "another transaction was faster")

  package static let mismatch = Self(.mismatch, "a column has another type than expected")

  package var description: String { message }
}
