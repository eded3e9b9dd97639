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
