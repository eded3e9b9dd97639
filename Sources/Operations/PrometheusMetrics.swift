package import CoreMetrics
import Synchronization

/// The metrics of this process, in Prometheus' text format.
///
/// A backend of swift-metrics: counters become counters; gauges, meters and recorders that do not aggregate become
/// gauges; timers (in seconds) and aggregating recorders become histograms. Making a handle takes a lock; using one
/// takes none.
package final class PrometheusMetrics: MetricsFactory {
  /// What may be configured.
  package struct Configuration: Sendable {
    /// Bucket bounds by metric name; finite and rising, at most 31.
    package var buckets = MetricCatalogue.buckets
    /// Bucket bounds of timers that `buckets` does not name.
    package var secondsBuckets = MetricCatalogue.secondsBuckets
    /// Bucket bounds of aggregating recorders that `buckets` does not name.
    package var valueBuckets = MetricCatalogue.valueBuckets
    /// The most series of one metric; what is beyond shares one series labelled `overflow="true"`.
    package var maximumSeriesPerMetric = 2000
    /// The most metrics; what is beyond is not exported.
    package var maximumMetrics = 1000

    package init() {}
  }

  private struct State {
    var families: [String: MetricFamily] = [:]
    var refused: Int64 = 0
  }

  private let configuration: Configuration
  private let build: BuildInformation?
  private let process = ProcessStatistics()
  private let state = Mutex(State())

  /// Metrics of a process; `build` nil where there is nothing to say about it.
  package init(configuration: Configuration = Configuration(), build: BuildInformation? = nil) {
    self.configuration = configuration
    self.build = build
  }

  /// Everything measured so far, in the text format 0.0.4: metrics by name, series by labels.
  package func exposition() -> String {
    let (families, refused) = state.withLock { state in
      (state.families.map { (name: $0.key, family: $0.value, series: $0.value.all) }, state.refused)
    }
    var snapshots = families.map { name, family, series in
      MetricSnapshot(
        name: name, kind: family.kind, help: family.help,
        samples: series.flatMap { $0.series.samples(labels: $0.labels) })
    }
    let overflows = families.filter { $0.family.overflowed > 0 }.sorted { $0.name < $1.name }
    snapshots.append(
      snapshot(
        "fanfare_metric_series_overflow_total",
        overflows.map {
          MetricSnapshot.Sample(labels: LabelText([("metric", $0.name)]), value: Double($0.family.overflowed))
        }))
    snapshots.append(
      snapshot("fanfare_metrics_refused_total", [MetricSnapshot.Sample(labels: "", value: Double(refused))]))
    snapshots += process.snapshots()
    if let build { snapshots.append(build.snapshot) }
    var output = ""
    for snapshot in snapshots.sorted(by: { $0.name < $1.name }) where !snapshot.samples.isEmpty {
      snapshot.append(to: &output)
    }
    return output
  }

  private func snapshot(_ name: String, _ samples: [MetricSnapshot.Sample]) -> MetricSnapshot {
    MetricSnapshot(name: name, kind: .counter, help: MetricCatalogue.help[name] ?? "", samples: samples)
  }

  /// The series for a handle; nil when the metric is refused: its name is another kind's or our own, or there are too
  /// many.
  private func series(
    _ label: String, _ dimensions: [(String, String)], kind: MetricKind, isTime: Bool = false
  ) -> (any MetricSeries)? {
    let name = MetricName.metric(label, kind: kind, isTime: isTime)
    let labels = LabelText(dimensions, reserved: kind == .histogram ? "le" : nil)
    return state.withLock { state in
      if state.families[name] == nil, state.families.count < configuration.maximumMetrics,
        !Self.reservedNames.contains(name)
      {
        let bounds = configuration.buckets[name] ?? (isTime ? configuration.secondsBuckets : configuration.valueBuckets)
        state.families[name] = MetricFamily(
          kind: kind, help: MetricCatalogue.help[name] ?? "Reported by the program as \(label).",
          bounds: HistogramSeries.sound(bounds))
      }
      guard state.families[name]?.kind == kind else {
        state.refused += 1
        return nil
      }
      return state.families[name]?.series(labels, limit: configuration.maximumSeriesPerMetric)
    }
  }

  private func release(_ handler: AnyObject) {
    state.withLock { state in
      for name in state.families.keys { state.families[name]?.release(handler) }
    }
  }

  /// What the exporter itself writes.
  private static let reservedNames: Set<String> = [
    "fanfare_build_info", "fanfare_metric_series_overflow_total", "fanfare_metrics_refused_total",
    "process_cpu_seconds_total",
    "process_max_fds", "process_open_fds", "process_resident_memory_bytes", "process_start_time_seconds",
    "process_virtual_memory_bytes",
  ]

  // A handle that is not exported still needs an object to write to: hence the casts' alternatives.

  package func makeCounter(label: String, dimensions: [(String, String)]) -> any CounterHandler {
    series(label, dimensions, kind: .counter) as? CounterSeries ?? CounterSeries()
  }

  package func makeFloatingPointCounter(label: String, dimensions: [(String, String)])
    -> any FloatingPointCounterHandler
  {
    series(label, dimensions, kind: .counter) as? CounterSeries ?? CounterSeries()
  }

  package func makeMeter(label: String, dimensions: [(String, String)]) -> any MeterHandler {
    series(label, dimensions, kind: .gauge) as? GaugeSeries ?? GaugeSeries()
  }

  package func makeRecorder(label: String, dimensions: [(String, String)], aggregate: Bool) -> any RecorderHandler {
    if aggregate {
      return series(label, dimensions, kind: .histogram) as? HistogramSeries ?? HistogramSeries(bounds: [])
    }
    return series(label, dimensions, kind: .gauge) as? GaugeSeries ?? GaugeSeries()
  }

  package func makeTimer(label: String, dimensions: [(String, String)]) -> any TimerHandler {
    series(label, dimensions, kind: .histogram, isTime: true) as? HistogramSeries ?? HistogramSeries(bounds: [])
  }

  package func destroyCounter(_ handler: any CounterHandler) { release(handler) }
  package func destroyFloatingPointCounter(_ handler: any FloatingPointCounterHandler) { release(handler) }
  package func destroyMeter(_ handler: any MeterHandler) { release(handler) }
  package func destroyRecorder(_ handler: any RecorderHandler) { release(handler) }
  package func destroyTimer(_ handler: any TimerHandler) { release(handler) }
}
