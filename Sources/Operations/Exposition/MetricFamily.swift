/// All series of one metric, bounded in number. A value; `PrometheusMetrics` holds the lock.
struct MetricFamily {
  let kind: MetricKind
  let help: String
  /// Bucket bounds, for histograms.
  let bounds: [Double]

  /// A series and how many handles write to it: two handles with the same labels share one.
  private struct Entry {
    let series: any MetricSeries
    var handles: Int
  }

  private var entries: [LabelText: Entry] = [:]
  private var labels: [ObjectIdentifier: LabelText] = [:]
  private var overflow: (any MetricSeries)?
  /// How many handles had to share the overflow series.
  private(set) var overflowed = 0

  init(kind: MetricKind, help: String, bounds: [Double]) {
    self.kind = kind
    self.help = help
    self.bounds = bounds
  }

  /// The series with these labels. When there are `limit` already, a series that all further label sets share: events
  /// still count in sums over the metric, and memory does not grow.
  mutating func series(_ labels: LabelText, limit: Int) -> any MetricSeries {
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

  /// Takes one handle of the series away, and the series with the last of them. Does nothing for a series of another
  /// family.
  mutating func release(_ series: AnyObject) {
    guard let labels = labels[ObjectIdentifier(series)], let entry = entries[labels] else { return }
    guard entry.handles == 1 else {
      entries[labels]?.handles -= 1
      return
    }
    entries[labels] = nil
    self.labels[ObjectIdentifier(series)] = nil
  }

  /// Every series with its labels, in the order of the labels; the overflow series last.
  var all: [(labels: LabelText, series: any MetricSeries)] {
    var all = entries.map { (labels: $0.key, series: $0.value.series) }
    all.sort { $0.labels < $1.labels }
    if let overflow { all.append((LabelText([("overflow", "true")]), overflow)) }
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
