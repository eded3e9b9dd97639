/// The values of one metric with all its series at one moment, ready to be written.
struct MetricSnapshot: Sendable {
  /// One line of the exposition.
  struct Sample: Sendable {
    /// What follows the metric's name: empty, or a histogram's `_bucket`, `_sum` or `_count`.
    let suffix: String
    /// The labels as the exposition writes them, without braces.
    let labels: String
    let value: Double

    init(suffix: String = "", labels: String, value: Double) {
      self.suffix = suffix
      self.labels = labels
      self.value = value
    }

    init(labels: MetricLabels, value: Double) {
      self.init(labels: labels.text, value: value)
    }
  }

  let name: String
  let kind: MetricKind
  let help: String
  let samples: [Sample]

  /// Without a help text the catalogue's is taken.
  init(_ name: String, kind: MetricKind, help: String? = nil, samples: [Sample]) {
    self.name = name
    self.kind = kind
    self.help = help ?? MetricCatalogue.help[name] ?? ""
    self.samples = samples
  }

  /// Appends the metric in Prometheus' text format 0.0.4: help, type, and one line per sample.
  func append(to output: inout String) {
    output += "# HELP \(name) \(Self.escaped(help.unicodeScalars))\n# TYPE \(name) \(kind.rawValue)\n"
    for sample in samples {
      output += name
      output += sample.suffix
      if !sample.labels.isEmpty { output += "{\(sample.labels)}" }
      output += " \(Self.number(sample.value))\n"
    }
  }

  /// Returns a number in the syntax of Go's `ParseFloat`, whole numbers without a fraction.
  static func number(_ value: Double) -> String {
    if value.isNaN { return "NaN" }
    if value.isInfinite { return value > 0 ? "+Inf" : "-Inf" }
    if let whole = Int64(exactly: value), abs(whole) < 1 << 53 { return String(whole) }
    return value.description
  }

  /// Escapes backslashes and line feeds; `quotes`: also quotation marks, as label values need it.
  static func escaped(_ scalars: some Sequence<Unicode.Scalar>, quotes: Bool = false) -> String {
    var escaped = ""
    for scalar in scalars {
      switch scalar {
      case "\\": escaped += #"\\"#
      case "\n": escaped += #"\n"#
      case "\"" where quotes: escaped += #"\""#
      default: escaped.unicodeScalars.append(scalar)
      }
    }
    return escaped
  }
}
