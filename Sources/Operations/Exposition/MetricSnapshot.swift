/// One metric with all its series at one moment: what the exposition writes.
struct MetricSnapshot: Sendable {
  let name: String
  let kind: MetricKind
  let help: String
  let samples: [Sample]

  /// One line: the labels already in the exposition's form.
  struct Sample: Sendable {
    /// What follows the metric's name: empty, or `_bucket`, `_sum`, `_count` of a histogram.
    let suffix: String
    let labels: String
    let value: Double

    init(suffix: String = "", labels: String, value: Double) {
      self.suffix = suffix
      self.labels = labels
      self.value = value
    }

    init(labels: LabelText, value: Double) {
      self.init(labels: labels.text, value: value)
    }
  }

  /// Appends the metric in the text format 0.0.4 (Prometheus, "Exposition formats"): help, type, one line for each
  /// sample.
  func append(to output: inout String) {
    output += "# HELP \(name) \(escapedHelp)\n# TYPE \(name) \(kind.rawValue)\n"
    for sample in samples {
      output += name
      output += sample.suffix
      if !sample.labels.isEmpty { output += "{\(sample.labels)}" }
      output += " \(Self.number(sample.value))\n"
    }
  }

  /// A number as Go's `ParseFloat` reads it, whole numbers without a fraction.
  static func number(_ value: Double) -> String {
    if value.isNaN { return "NaN" }
    if value.isInfinite { return value > 0 ? "+Inf" : "-Inf" }
    if let whole = Int64(exactly: value), abs(whole) < 1 << 53 { return String(whole) }
    return value.description
  }

  private var escapedHelp: String {
    var escaped = ""
    for scalar in help.unicodeScalars {
      switch scalar {
      case "\\": escaped += #"\\"#
      case "\n": escaped += #"\n"#
      default: escaped.unicodeScalars.append(scalar)
      }
    }
    return escaped
  }
}
