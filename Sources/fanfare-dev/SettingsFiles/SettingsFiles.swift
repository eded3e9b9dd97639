import ArgumentParser
import Foundation
import Roles
import SettingsTable

/// The files of the repository that are made from the declarations of settings.
enum SettingsFiles {
  /// The texts by path in the repository.
  static var all: [(path: String, text: String)] {
    [
      ("deploy/fanfare.yaml", example), ("deploy/fanfare-dev.yaml", workshopExample),
      ("Sources/fanfare/Documentation.docc/ConfigurationKeys.md", reference),
    ]
  }

  private static let origin = "`fanfare-dev settings` writes this file from the declarations of the keys."

  private static var example: String {
    var file = ExampleFile(
      """
      # Every configuration key with its default. A key that is commented out has no default.
      # All roles read the same file; each role uses the keys that it needs.
      # Environment variables override the file: FANFARE_KAFKA_BOOTSTRAP_SERVERS sets kafka.bootstrapServers. The
      # elements of a list are separated by commas.
      # Times are in seconds unless the key has another unit. Keys, certificates and secrets are read from separate files.
      # \(origin)

      """)
    for section in Settings.declarations {
      let isHook = section.prefix.hasPrefix("hook.")
      file.add(section, name: isHook ? "audit" : "default", onlyShown: isHook)
    }
    return file.text
  }

  private static var workshopExample: String {
    var file = ExampleFile(
      """
      # Every key that only fanfare-dev reads, with its default. A key that is commented out has no default.
      # fanfare-dev also reads the keys of deploy/fanfare.yaml.
      # \(origin)

      """)
    for section in WorkshopSettings.declarations { file.add(section) }
    return file.text
  }

  private static var reference: String {
    var text = """
      # Configuration keys

      \(origin)
      [Configuration](Configuration.md) explains what belongs together. For each key: the values that it takes, its
      default, and its meaning. NAME is the name of a hub or hook.

      """
    for section in Settings.declarations {
      text += "\n## \(section.prefix.isEmpty ? "Top level" : section.prefix)\n\n"
      if !section.note.isEmpty { text += ExampleFile.wrapped(section.note, first: "", other: "") + "\n" }
      for key in section.keys {
        let standard = key.standard.map { " (default `\($0)`)" } ?? ""
        text += ExampleFile.wrapped(
          "`\(key.name)`: \(key.values)\(standard). \(key.summary.prefix(1).uppercased())\(key.summary.dropFirst()).",
          first: "- ", other: "  ")
      }
    }
    return text
  }
}

/// `fanfare-dev settings`
struct SettingsCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "settings",
    abstract: "Writes the files that are made from the declarations of settings.",
    discussion: SettingsFiles.all.map(\.path).joined(separator: "\n"))

  @Option(help: "The folder of the repository.") var folder = "."

  func run() throws {
    for (path, text) in SettingsFiles.all {
      try text.write(to: URL(fileURLWithPath: folder).appending(path: path), atomically: true, encoding: .utf8)
      Console.print(path)
    }
  }
}
