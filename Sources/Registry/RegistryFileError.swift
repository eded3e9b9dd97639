/// The registry's file cannot be used, now or later: nothing helps but another file, other rights, or another release.
/// An error of the process, where `RegistryError` is one of a single request. Contains nothing of what is stored.
package struct RegistryFileError: Error, Hashable, Sendable, CustomStringConvertible {
  /// For people; names the file.
  package let message: String

  init(_ message: String) {
    self.message = message
  }

  package var description: String { message }
}
