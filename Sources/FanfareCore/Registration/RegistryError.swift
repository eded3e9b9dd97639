/// An error of the registry. Never contains a handle.
package struct RegistryError: Error, Hashable, Sendable, CustomStringConvertible {
  /// The kind of failure, which determines the answer to the caller.
  package struct Code: Hashable, Sendable {
    private enum Wrapped { case gone, notFound, forbidden, conflict, changed, unavailable }
    private let wrapped: Wrapped

    /// The id does not exist, or the caller may not use it: the app must request a new one.
    package static let gone = Self(wrapped: .gone)
    /// The object does not exist, or the caller may not see it.
    package static let notFound = Self(wrapped: .notFound)
    /// The caller may not use the tag.
    package static let forbidden = Self(wrapped: .forbidden)
    /// The object has been changed, or belongs to another user.
    package static let conflict = Self(wrapped: .conflict)
    /// The condition of the change does not hold for the object.
    package static let changed = Self(wrapped: .changed)
    /// The store is unreachable, locked for too long, or failed. The same call may succeed later.
    package static let unavailable = Self(wrapped: .unavailable)
  }

  package let code: Code
  /// Names the field or store, for people.
  package let message: String
  /// Whether the change may have taken effect, because the store was lost during the commit.
  /// Only with `.unavailable`.
  package let isOutcomeUnknown: Bool

  package init(_ code: Code, _ message: String, isOutcomeUnknown: Bool = false) {
    self.code = code
    self.message = message
    self.isOutcomeUnknown = isOutcomeUnknown
  }

  package var description: String { message }
}
