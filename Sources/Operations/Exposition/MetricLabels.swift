/// The labels of one series as the exposition writes them: `a="1",b="2"`, sorted by name and escaped.
///
/// Equal labels have equal text.
struct MetricLabels: Hashable, Comparable, Sendable {
  /// The most Unicode scalars of one value; the rest is cut off.
  static let maximumValueLength = 256

  let text: String

  /// Makes names valid (`[a-zA-Z_][a-zA-Z0-9_]*`, not reserved) and escapes values.
  /// Of several labels with one name the first counts.
  init(_ dimensions: [(String, String)], reserved: String? = nil) {
    var names: Set<String> = []
    var pairs: [(name: String, value: String)] = []
    for (name, value) in dimensions {
      let name = MetricName.label(name, reserved: reserved)
      if names.insert(name).inserted { pairs.append((name, value)) }
    }
    pairs.sort { $0.name < $1.name }
    text = pairs.map {
      "\($0.name)=\"\(MetricSnapshot.escaped($0.value.unicodeScalars.prefix(Self.maximumValueLength), quotes: true))\""
    }.joined(separator: ",")
  }

  /// Returns the text with one more label at its end: a histogram's `le`.
  /// Name and value must need no escapes.
  func appending(_ name: String, _ value: String) -> String {
    (text.isEmpty ? "" : text + ",") + "\(name)=\"\(value)\""
  }

  static func < (left: Self, right: Self) -> Bool { left.text < right.text }
}

/// Turns the labels of swift-metrics into names that Prometheus accepts. Valid names stay unchanged.
enum MetricName {
  /// Returns a metric's name with the suffixes of its kind and unit, which other libraries leave out.
  static func metric(_ label: String, kind: MetricKind, isTime: Bool) -> String {
    var name = sanitized(label, alsoAllowed: ":")
    if kind == .counter, !name.hasSuffix("_total") { name += "_total" }
    if isTime, !name.hasSuffix("_seconds") { name += "_seconds" }
    return name
  }

  /// Returns the name of a label.
  /// Changes names that are reserved: two leading underscores, and a histogram's `le`.
  static func label(_ name: String, reserved: String?) -> String {
    var name = sanitized(name, alsoAllowed: nil)
    while name.hasPrefix("__") { name.removeFirst() }
    return name == reserved ? name + "_" : name
  }

  private static func sanitized(_ name: String, alsoAllowed: Unicode.Scalar?) -> String {
    var result = ""
    for scalar in name.unicodeScalars.prefix(200) {
      switch scalar {
      case "a"..."z", "A"..."Z", "_": result.unicodeScalars.append(scalar)
      case "0"..."9":
        if result.isEmpty { result = "_" }
        result.unicodeScalars.append(scalar)
      case alsoAllowed: result.unicodeScalars.append(scalar)
      default: result += "_"
      }
    }
    return result.isEmpty ? "_" : result
  }
}
