package import CoreMetrics
import Synchronization

/// A backend of swift-metrics that exports the metrics of this process in Prometheus' text format.
///
/// Counters become counters; gauges, meters and recorders that do not aggregate become gauges; timers (in seconds) and
/// aggregating recorders become histograms. Making a handle takes a lock, using one does not.
package final class PrometheusMetrics: MetricsFactory {
  /// Bucket bounds and limits.
  package struct Configuration: Sendable {
    /// Bucket bounds by metric name: at most 31, finite and rising.
    package var buckets = MetricCatalogue.buckets
    /// Bucket bounds of all other timers.
    package var secondsBuckets = MetricCatalogue.secondsBuckets
    /// Bucket bounds of all other aggregating recorders.
    package var valueBuckets = MetricCatalogue.valueBuckets
    /// The most series of one metric; further ones share a series labelled `overflow="true"`.
    package var maximumSeriesPerMetric = 2000
    /// The most metrics; further ones are not exported.
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

  /// Without `build`, `fanfare_build_info` is not exported.
  package init(configuration: Configuration = Configuration(), build: BuildInformation? = nil) {
    self.configuration = configuration
    self.build = build
  }

  /// Returns all metrics in the text format 0.0.4, sorted by name, and their series sorted by labels.
  package func exposition() -> String {
    var output = ""
    for snapshot in snapshots().sorted(by: { $0.name < $1.name }) where !snapshot.samples.isEmpty {
      snapshot.append(to: &output)
    }
    return output
  }

  /// The values of all metrics, with those of the process and of the exporter itself.
  func snapshots() -> [MetricSnapshot] {
    let (families, refused) = state.withLock { state in
      (state.families.map { (name: $0.key, family: $0.value, series: $0.value.all) }, state.refused)
    }
    var snapshots = families.map { name, family, series in
      MetricSnapshot(
        name, kind: family.kind, help: family.help, samples: series.flatMap { $0.series.samples(labels: $0.labels) })
    }
    let overflows = families.filter { $0.family.overflowed > 0 }.sorted { $0.name < $1.name }
    snapshots.append(
      MetricSnapshot(
        "fanfare_metric_series_overflow_total", kind: .counter,
        samples: overflows.map {
          MetricSnapshot.Sample(labels: MetricLabels([("metric", $0.name)]), value: Double($0.family.overflowed))
        }))
    snapshots.append(
      MetricSnapshot(
        "fanfare_metrics_refused_total", kind: .counter,
        samples: [MetricSnapshot.Sample(labels: "", value: Double(refused))]))
    snapshots += process.snapshots()
    if let build { snapshots.append(build.snapshot) }
    return snapshots
  }

  /// Returns the series of a handle, or nil if the metric is refused.
  /// Its name is reserved or belongs to another kind, or there are too many metrics.
  private func series(
    _ label: String, _ dimensions: [(String, String)], kind: MetricKind, isTime: Bool = false
  ) -> (any MetricSeries)? {
    let name = MetricName.metric(label, kind: kind, isTime: isTime)
    let labels = MetricLabels(dimensions, reserved: kind == .histogram ? "le" : nil)
    return state.withLock { state in
      if state.families[name] == nil, state.families.count < configuration.maximumMetrics,
        !Self.reservedNames.contains(name)
      {
        let bounds = configuration.buckets[name] ?? (isTime ? configuration.secondsBuckets : configuration.valueBuckets)
        state.families[name] = MetricFamily(
          kind: kind, help: MetricCatalogue.help[name] ?? "Reported by the program as \(label).",
          bounds: HistogramSeries.usableBounds(bounds))
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

  /// Metrics that the exporter writes itself.
  private static let reservedNames: Set<String> = [
    "fanfare_build_info", "fanfare_metric_series_overflow_total", "fanfare_metrics_refused_total",
    "process_cpu_seconds_total", "process_max_fds", "process_open_fds", "process_resident_memory_bytes",
    "process_start_time_seconds", "process_virtual_memory_bytes",
  ]

  // The handle of a refused metric needs an object to write to, which is not exported.

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
