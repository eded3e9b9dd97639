package import Foundation

/// A file with a secret that only its owner may read, as the settings demand.
package struct SecretFixture: Sendable {
  package let url: URL

  package var path: String { url.path }

  /// Makes a new file in the temporary directory.
  package init(_ text: String) throws {
    url = FileManager.default.temporaryDirectory.appending(path: "fanfare-secret-\(UUID())")
    try replace(with: text)
  }

  /// Replaces the contents; the permissions are those of a secret again.
  package func replace(with text: String) throws {
    try Data(text.utf8).write(to: url)
    try set(mode: 0o600)
  }

  package func set(mode: Int) throws {
    try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: url.path)
  }

  package func remove() throws { try FileManager.default.removeItem(at: url) }
}
