/// Why the registry did not do what it was asked. Never contains a handle.
package struct RegistryError: Error, Hashable, Sendable, CustomStringConvertible {
  /// What kind of failure it is, and so what the caller is to be told.
  package struct Code: Hashable, Sendable {
    private enum Wrapped { case gone, notFound, forbidden, conflict, unavailable }
    private let wrapped: Wrapped

    /// The id is not alive, or not the caller's to use: the app must ask for a new one.
    package static let gone = Self(wrapped: .gone)
    /// There is no such thing that the caller may see.
    package static let notFound = Self(wrapped: .notFound)
    /// The caller may not use that tag.
    package static let forbidden = Self(wrapped: .forbidden)
    /// The thing belongs to somebody else.
    package static let conflict = Self(wrapped: .conflict)
    /// The store cannot be reached, is locked for too long, or failed; the same request may succeed later.
    package static let unavailable = Self(wrapped: .unavailable)
  }

  package let code: Code
  /// For people; says which field or store is meant.
  package let message: String
  /// Whether the change may have happened: the store was lost while it was being made durable. Only with
  /// `.unavailable`.
  package let isOutcomeUnknown: Bool

  /// Makes an error.
  package init(_ code: Code, _ message: String, isOutcomeUnknown: Bool = false) {
    self.code = code
    self.message = message
    self.isOutcomeUnknown = isOutcomeUnknown
  }

  package var description: String { message }
}
