/// The kinds of exported metrics.
/// There are no summaries: their quantiles cannot be aggregated over processes.
enum MetricKind: String, Sendable {
  case counter
  case gauge
  case histogram
}

/// All series of one metric. Their number is bounded.
struct MetricFamily {
  let kind: MetricKind
  let help: String
  /// Bucket bounds, for histograms.
  let bounds: [Double]

  /// A series and the number of handles that write to it. Handles with equal labels share a series.
  private struct Entry {
    let series: any MetricSeries
    var handles: Int
  }

  private var entries: [MetricLabels: Entry] = [:]
  private var labels: [ObjectIdentifier: MetricLabels] = [:]
  private var overflow: (any MetricSeries)?
  /// How many handles were given the overflow series.
  private(set) var overflowed = 0

  init(kind: MetricKind, help: String, bounds: [Double]) {
    self.kind = kind
    self.help = help
    self.bounds = bounds
  }

  /// Returns the series with these labels.
  ///
  /// Beyond `limit` series all further labels share one overflow series: sums over the metric stay correct, and memory
  /// does not grow.
  mutating func series(_ labels: MetricLabels, limit: Int) -> any MetricSeries {
    if let entry = entries[labels] {
      entries[labels]?.handles += 1
      return entry.series
    }
    guard entries.count < limit else {
      overflowed += 1
      let shared = overflow ?? makeSeries()
      overflow = shared
      return shared
    }
    let series = makeSeries()
    entries[labels] = Entry(series: series, handles: 1)
    self.labels[ObjectIdentifier(series)] = labels
    return series
  }

  /// Removes one handle of a series, and with the last handle the series.
  /// Ignores series of other families.
  mutating func release(_ series: AnyObject) {
    guard let labels = labels[ObjectIdentifier(series)], let entry = entries[labels] else { return }
    guard entry.handles == 1 else {
      entries[labels]?.handles -= 1
      return
    }
    entries[labels] = nil
    self.labels[ObjectIdentifier(series)] = nil
  }

  /// All series, sorted by their labels; the overflow series last.
  var all: [(labels: MetricLabels, series: any MetricSeries)] {
    var all = entries.map { (labels: $0.key, series: $0.value.series) }
    all.sort { $0.labels < $1.labels }
    if let overflow { all.append((MetricLabels([("overflow", "true")]), overflow)) }
    return all
  }

  private func makeSeries() -> any MetricSeries {
    switch kind {
    case .counter: CounterSeries()
    case .gauge: GaugeSeries()
    case .histogram: HistogramSeries(bounds: bounds)
    }
  }
}

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
