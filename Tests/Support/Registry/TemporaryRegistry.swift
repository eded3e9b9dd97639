import Foundation
package import Registry

/// A registry on a file of its own, removed with the last reference. The real thing instead of a fake: it is as quick,
/// and it cannot differ from itself.
package final class TemporaryRegistry: Sendable {
  /// Ready for use.
  package let registry: SQLiteRegistry
  /// How the file was opened: a second `SQLiteRegistry` with it shares the file as another process would.
  package let configuration: SQLiteRegistryConfiguration
  private let directory: URL

  /// Makes the file; the closure may change how it is opened.
  package init(configure: (inout SQLiteRegistryConfiguration) -> Void = { _ in }) throws {
    directory = FileManager.default.temporaryDirectory.appending(path: "fanfare-registry-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
    var configuration = SQLiteRegistryConfiguration(path: directory.appending(path: "registry.sqlite").path)
    configure(&configuration)
    self.configuration = configuration
    registry = try SQLiteRegistry(configuration)
  }

  deinit {
    // A file left behind in the temporary directory harms nobody, and there is nobody left to tell.
    try? FileManager.default.removeItem(at: directory)
  }
}
