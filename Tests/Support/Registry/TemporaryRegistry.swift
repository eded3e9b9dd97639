import Foundation
package import Registry

/// A SQLite registry in a temporary file, removed with the last reference; fast enough that tests need no fake.
package final class TemporaryRegistry: Sendable {
  package let registry: RegistryDatabase
  /// A second `RegistryDatabase` with this configuration shares the file, like another process.
  package let configuration: SQLiteRegistryConfiguration
  private let directory: URL

  /// Creates the file; the closure may change the configuration.
  package init(configure: (inout SQLiteRegistryConfiguration) -> Void = { _ in }) throws {
    directory = FileManager.default.temporaryDirectory.appending(path: "fanfare-registry-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
    var configuration = SQLiteRegistryConfiguration(path: directory.appending(path: "registry.sqlite").path)
    configure(&configuration)
    self.configuration = configuration
    registry = try RegistryDatabase(configuration)
  }

  deinit {
    // Errors are ignored: the file is in the temporary directory.
    try? FileManager.default.removeItem(at: directory)
  }
}

/// Random tag expressions.
package enum AudienceWords {
  /// The text of a random expression over the tags.
  package static func expression(over tags: [String], depth: Int, using random: inout SeededGenerator) -> String {
    switch depth == 0 ? 0 : Int.random(in: 0..<4, using: &random) {
    case 1: return "!(" + expression(over: tags, depth: depth - 1, using: &random) + ")"
    case let kind where kind > 1:
      var operands: [String] = []
      for _ in 0..<Int.random(in: 2...3, using: &random) {
        operands.append("(" + expression(over: tags, depth: depth - 1, using: &random) + ")")
      }
      return operands.joined(separator: kind == 2 ? "&&" : "||")
    default: return tags.randomElement(using: &random) ?? "a"
    }
  }
}
