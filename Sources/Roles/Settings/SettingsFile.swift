import FoundationEssentials
package import SettingsTable
import Yams

/// The keys of a YAML configuration file, with their lines.
///
/// Values of the wrong shape become mistakes that name only their keys: the value may be a password.
package struct SettingsFile {
  package struct Entry {
    /// The line of the value, from 1.
    package let line: Int?
    /// The value's text; nil for a list.
    package let text: String?
    /// Nil if the value has the wrong shape.
    let value: SettingsValue?
  }

  let path: String
  /// The option that names the file, for mistakes of the whole file.
  private let option: String
  /// By dotted key, `kafka.bootstrapServers`. A list is one value.
  package private(set) var entries: [String: Entry] = [:]
  package private(set) var mistakes: [SettingsMistake] = []

  /// Reads a file; an empty document has no entries.
  ///
  /// Throws for a file that cannot be read, is not YAML, or has no mapping. The error has no text of the file.
  package init(path: String, of option: String = "--config") throws(SettingsError) {
    (self.path, self.option) = (path, option)
    let text: String
    do { text = try String(contentsOfFile: path, encoding: .utf8) } catch {
      throw SettingsError(option, "names a file that cannot be read: \(path)")
    }
    let document: Yams.Node?
    do { document = try Yams.compose(yaml: text) } catch { throw Self.notYAML(path, error, of: option) }
    // A file of comments has no document; `---` alone is an empty one.
    guard let document, document.null == nil else { return }
    guard document.mapping != nil else {
      throw SettingsError(option, "must name a file with a mapping of keys: \(path)")
    }
    read(document, under: "")
  }

  /// The values of the entries, to read them by key.
  var source: SettingsSource { SettingsSource(file: entries.compactMapValues(\.value)) }

  /// Reads the entries of a document.
  init(_ document: Yams.Node, path: String = "") {
    (self.path, option) = (path, "--config")
    read(document, under: "")
  }

  /// The error for text that is not YAML.
  static func notYAML(_ path: String, _ error: any Error, of option: String = "--config") -> SettingsError {
    SettingsError(option, "names a file that is not YAML: \(path): \(place(of: error))")
  }

  private mutating func read(_ node: Yams.Node, under key: String) {
    guard let mapping = node.mapping else { return add(node, key) }
    for (name, value) in mapping {
      guard let word = name.string else {
        add(name, key.isEmpty ? option : key, mistake: "must have words for keys")
        continue
      }
      read(value, under: key.isEmpty ? word : "\(key).\(word)")
    }
  }

  private mutating func add(_ node: Yams.Node, _ key: String) {
    let problem: String? =
      if node.null != nil {
        // Read as a scalar, `null` or `~` would be text.
        "must not be empty"
      } else if let list = node.sequence {
        if list.contains(where: { $0.scalar == nil }) {
          "must be a list of texts"
        } else {
          list.contains { $0.null != nil } ? "must not have an empty element" : nil
        }
      } else {
        nil
      }
    add(node, key, mistake: problem)
  }

  private mutating func add(_ node: Yams.Node, _ key: String, mistake: String?) {
    entries[key] = Entry(
      line: node.mark?.line, text: node.scalar?.string, value: mistake == nil ? value(of: node) : nil)
    if let mistake { mistakes.append(SettingsMistake(key: key, expectation: mistake)) }
  }

  private func value(of node: Yams.Node) -> SettingsValue? {
    if let scalar = node.scalar {
      return SettingsValue(
        text: scalar.string, whole: Int.construct(from: scalar), number: Double.construct(from: scalar),
        truth: Bool.construct(from: scalar))
    }
    guard let elements = node.sequence?.compactMap(\.scalar) else { return nil }
    let numbers = elements.compactMap { Int.construct(from: $0) }
    return SettingsValue(
      texts: elements.map(\.string), wholes: numbers.count == elements.count ? numbers : nil)
  }

  /// The position and kind of a YAML error, without the text at that position, which may be a password.
  private static func place(of error: any Error) -> String {
    switch error {
    case YamlError.scanner(_, let problem, let mark, _), YamlError.parser(_, let problem, let mark, _),
      YamlError.composer(_, let problem, let mark, _):
      "line \(mark.line), column \(mark.column): \(problem)"
    case YamlError.reader(let problem, _, _, _): problem
    case YamlError.duplicatedKeysInMapping(_, let context): "line \(context.mark.line): a key is given twice"
    default: "it cannot be read"
    }
  }
}
