import Metrics
import Support
import Testing

@testable import Operations

@Suite struct HistogramTests {
  @Test func bucketsAreCumulativeWithInclusiveBounds() {
    var configuration = PrometheusMetrics.Configuration()
    configuration.buckets["t_seconds"] = [0.01, 0.1, 1]
    let metrics = PrometheusMetrics(configuration: configuration)
    let timer = Timer(label: "t_seconds", dimensions: [("hub", "a")], factory: metrics)
    for milliseconds in [5, 10, 11, 100, 1000, 5000] { timer.recordMilliseconds(milliseconds) }
    let exposition = Exposition(metrics)
    #expect(
      exposition.lines(of: "t_seconds").filter { !$0.hasPrefix("# HELP") && !$0.hasPrefix("t_seconds_sum") } == [
        "# TYPE t_seconds histogram",
        #"t_seconds_bucket{hub="a",le="0.01"} 2"#,
        #"t_seconds_bucket{hub="a",le="0.1"} 4"#,
        #"t_seconds_bucket{hub="a",le="1"} 5"#,
        #"t_seconds_bucket{hub="a",le="+Inf"} 6"#,
        #"t_seconds_count{hub="a"} 6"#,
      ])
    #expect(abs((exposition[#"t_seconds_sum{hub="a"}"#] ?? 0) - 6.126) < 1e-9)
  }

  @Test func bucketsDependOnKindAndName() {
    let metrics = PrometheusMetrics()
    Timer(label: "any_seconds", factory: metrics).recordSeconds(1)
    Timer(label: "fanfare_registry_lookup_seconds", factory: metrics).recordMicroseconds(20)
    Recorder(label: "batch_records", factory: metrics).record(3)
    let exposition = Exposition(metrics)
    #expect(exposition[#"any_seconds_bucket{le="0.001"}"#] == 0)
    #expect(exposition[#"any_seconds_bucket{le="60"}"#] == 1)
    #expect(exposition[#"fanfare_registry_lookup_seconds_bucket{le="2.5e-05"}"#] == 1)
    #expect(exposition[#"batch_records_bucket{le="2"}"#] == 0)
    #expect(exposition[#"batch_records_bucket{le="5"}"#] == 1)
  }

  @Test func unusableBoundsAndValuesAreIgnored() {
    var configuration = PrometheusMetrics.Configuration()
    configuration.buckets["r"] = [.infinity, 5, 1, 5, .nan] + (0..<100).map { 10 + Double($0) }
    let metrics = PrometheusMetrics(configuration: configuration)
    let recorder = Recorder(label: "r", factory: metrics)
    recorder.record(Double.nan)
    recorder.record(2)
    recorder.record(-1)
    let exposition = Exposition(metrics)
    #expect(exposition.lines(of: "r_bucket").count == HistogramSeries.maximumBounds + 1)
    #expect(exposition[#"r_bucket{le="1"}"#] == 1)
    #expect(exposition[#"r_bucket{le="5"}"#] == 2)
    #expect(exposition["r_sum"] == 1)
    #expect(exposition["r_count"] == 2)
  }

  @Test(arguments: [UInt64(1), 2, 3]) func bucketCountsEqualCountingByHand(seed: UInt64) {
    var generator = SeededGenerator(seed: seed)
    let bounds = HistogramSeries.usableBounds((0..<12).map { _ in Double.random(in: -10...10, using: &generator) })
    let histogram = HistogramSeries(bounds: bounds)
    // Quarters, so that sums are exact in whatever order.
    let values = (0..<2000).map { _ in (Double.random(in: -12...12, using: &generator) * 4).rounded() / 4 } + bounds
    for value in values { histogram.record(value) }
    let samples = histogram.samples(labels: MetricLabels([]))
    for (bound, sample) in zip(bounds, samples) { #expect(sample.value == Double(values.count { $0 <= bound })) }
    #expect(samples[bounds.count].value == Double(values.count))
    #expect(abs(samples[bounds.count + 1].value - values.reduce(0, +)) < 1e-6)
    #expect(samples[bounds.count + 2].value == Double(values.count))
  }

  @Test func concurrentEventsAreAllCounted() async {
    let metrics = PrometheusMetrics()
    await withTaskGroup { group in
      for _ in 0..<8 {
        group.addTask {
          let timer = Timer(label: "t_seconds", factory: metrics)
          let counter = FloatingPointCounter(label: "c_total", factory: metrics)
          for _ in 0..<5000 {
            timer.recordSeconds(1)
            counter.increment(by: 0.5)
          }
        }
      }
    }
    let exposition = Exposition(metrics)
    #expect(exposition["t_seconds_count"] == 40_000)
    #expect(exposition["t_seconds_sum"] == 40_000)
    #expect(exposition["c_total"] == 20_000)
  }
}
