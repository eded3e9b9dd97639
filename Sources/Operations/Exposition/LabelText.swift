/// The labels of one series as the exposition writes them, `a="1",b="2"`: sorted by name and escaped, so that equal
/// labels are equal text.
struct LabelText: Hashable, Comparable, Sendable {
  /// The most Unicode scalars of one value; more is cut off, for a label is a category and not a place for data.
  static let maximumValueLength = 256

  let text: String

  /// Makes names valid (`[a-zA-Z_][a-zA-Z0-9_]*`, not reserved) and escapes values. Of two labels with one name the
  /// first counts.
  init(_ dimensions: [(String, String)], reserved: String? = nil) {
    var names: Set<String> = []
    var pairs: [(name: String, value: String)] = []
    for (name, value) in dimensions {
      let name = MetricName.label(name, reserved: reserved)
      if names.insert(name).inserted { pairs.append((name, value)) }
    }
    pairs.sort { $0.name < $1.name }
    text = pairs.map { "\($0.name)=\"\(Self.escaped($0.value))\"" }.joined(separator: ",")
  }

  /// The same labels and one more at the end, whose name and value need no change: a histogram's `le`.
  func appending(_ name: String, _ value: String) -> String {
    (text.isEmpty ? "" : text + ",") + "\(name)=\"\(value)\""
  }

  private static func escaped(_ value: String) -> String {
    var escaped = ""
    for scalar in value.unicodeScalars.prefix(maximumValueLength) {
      switch scalar {
      case "\\": escaped += #"\\"#
      case "\"": escaped += #"\""#
      case "\n": escaped += #"\n"#
      default: escaped.unicodeScalars.append(scalar)
      }
    }
    return escaped
  }

  static func < (left: Self, right: Self) -> Bool { left.text < right.text }
}
