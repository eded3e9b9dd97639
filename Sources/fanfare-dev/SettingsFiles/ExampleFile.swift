import SettingsTable

/// Writes sections of settings as a configuration file that lists every key with its default.
///
/// Keys without a default are commented out with an example as value, and so are sections that have only such keys.
struct ExampleFile {
  /// Where the comment behind a value begins.
  private static let column = 36

  private(set) var text: String
  /// The mappings that are open.
  private var path: [String] = []

  init(_ header: String) { text = header }

  /// Adds a section; `name` takes the place of NAME in its prefix. A section that is `onlyShown` is commented out.
  mutating func add(_ section: SettingsDeclaration, name: String = "default", onlyShown: Bool = false) {
    let isCommented = onlyShown || section.keys.allSatisfy { $0.standard == nil && !$0.isGiven }
    let mappings = section.prefix.split(separator: ".").map { $0 == "NAME" ? name : String($0) }
    let shared = zip(path, mappings).prefix { $0 == $1 }.count
    if shared == 0 { text += "\n" }
    path = mappings
    // The mark of a comment stands where the first mapping of the section begins.
    let mark = onlyShown ? 0 : shared
    func indent(_ depth: Int) -> String {
      let spaces = { String(repeating: "  ", count: $0) }
      return isCommented ? spaces(mark) + "# " + spaces(depth - mark) : spaces(depth)
    }
    if !section.note.isEmpty {
      comment(section.note, String(repeating: "  ", count: onlyShown ? 0 : mappings.count - 1))
    }
    for depth in shared..<mappings.count { text += "\(indent(depth))\(mappings[depth]):\n" }
    for key in section.keys { add(key, indent(mappings.count), isCommented) }
  }

  private mutating func add(_ key: SettingsDeclaration.Key, _ indent: String, _ isCommented: Bool) {
    let isActive = key.standard != nil || key.isGiven
    let line = "\(indent)\(isActive || isCommented ? "" : "# ")\(key.name): \(key.standard ?? key.example ?? "")"
    let isChoice = key.values.contains(", ") && key.values != "true, false"
    let summary = isChoice ? "\(key.values): \(key.summary)" : key.summary
    let padded = line + String(repeating: " ", count: max(2, Self.column - line.count))
    if padded.count + 2 + summary.count <= 120 {
      text += "\(padded)# \(summary)\n"
    } else {
      comment(isChoice ? summary : summary.prefix(1).uppercased() + summary.dropFirst(), indent)
      text += line + "\n"
    }
  }

  private mutating func comment(_ words: String, _ indent: String) {
    let mark = indent.contains("#") ? indent : indent + "# "
    text += Self.wrapped(words, first: mark, other: mark)
  }

  /// The words in lines of at most 120 columns.
  static func wrapped(_ words: String, first: String, other: String) -> String {
    var (lines, line) = ("", first)
    for word in words.split(separator: " ") {
      let isFirst = line == first || line == other
      if !isFirst, line.count + 1 + word.count > 120 {
        lines += line + "\n"
        line = other + word
      } else {
        line += (isFirst ? "" : " ") + word
      }
    }
    return lines + line + "\n"
  }
}
