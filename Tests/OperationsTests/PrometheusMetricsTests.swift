import FanfareCore
import Metrics
import Testing

@testable import Operations

@Suite struct PrometheusMetricsTests {
  @Test func countersIgnoreNegativeAndNonFiniteAmounts() {
    let metrics = PrometheusMetrics()
    let counter = Counter(label: "fanfare_sends_accepted_total", dimensions: [("hub", "default")], factory: metrics)
    counter.increment()
    counter.increment(by: 41)
    counter.increment(by: -10)
    let fraction = FloatingPointCounter(label: "seconds_spent_total", factory: metrics)
    fraction.increment(by: 0.25)
    fraction.increment(by: 2)
    fraction.increment(by: Double.nan)
    let exposition = Exposition(metrics)
    #expect(
      exposition.lines(of: "fanfare_sends_accepted_total") == [
        "# HELP fanfare_sends_accepted_total Sends answered with success after Kafka acknowledged them.",
        "# TYPE fanfare_sends_accepted_total counter",
        #"fanfare_sends_accepted_total{hub="default"} 42"#,
      ])
    #expect(exposition["seconds_spent_total"] == 2.25)
  }

  @Test func gaugesMetersAndNonAggregatingRecordersAreExportedAsGauges() {
    let metrics = PrometheusMetrics()
    Gauge(label: "fanfare_sends_in_flight", factory: metrics).record(7)
    Recorder(label: "plain", aggregate: false, factory: metrics).record(1.5)
    let meter = Meter(label: "fanfare_pushes_in_flight", factory: metrics)
    meter.set(10)
    meter.increment(by: 5)
    meter.decrement(by: 3)
    let exposition = Exposition(metrics)
    #expect(exposition["fanfare_sends_in_flight"] == 7)
    #expect(exposition["plain"] == 1.5)
    #expect(exposition["fanfare_pushes_in_flight"] == 12)
    #expect(exposition.lines.filter { $0.hasPrefix("# TYPE") && $0.hasSuffix("gauge") }.count >= 3)
  }

  @Test func labelsAreSortedAndEscaped() {
    let metrics = PrometheusMetrics()
    Gauge(label: "g", dimensions: [("z", "1"), ("a", "say \"hi\"\\\n")], factory: metrics).record(1)
    Gauge(label: "g", dimensions: [("a", "say \"hi\"\\\n"), ("z", "1")], factory: metrics).record(2)
    Gauge(label: "g", dimensions: [("other", "key")], factory: metrics).record(3)
    let lines = Exposition(metrics).lines(of: "g")
    #expect(lines.dropFirst(2) == [#"g{a="say \"hi\"\\\n",z="1"} 2"#, #"g{other="key"} 3"#])
  }

  @Test func invalidNamesOfOtherLibrariesAreMadeValid() {
    let metrics = PrometheusMetrics()
    Counter(
      label: "hb.requests", dimensions: [("hb.status", "200"), ("hb_status", "404"), ("__name", "x"), ("9", "y")],
      factory: metrics
    )
    .increment()
    Timer(label: "http.server.request.duration", dimensions: [("le", "x")], factory: metrics).recordSeconds(1)
    let exposition = Exposition(metrics)
    #expect(exposition[#"hb_requests_total{_9="y",_name="x",hb_status="200"}"#] == 1)
    #expect(exposition[#"http_server_request_duration_seconds_count{le_="x"}"#] == 1)
    #expect(
      exposition.lines(of: "hb_requests_total").first
        == "# HELP hb_requests_total Reported by the program as hb.requests.")
  }

  @Test func seriesBeyondTheLimitShareTheOverflowSeries() {
    var configuration = PrometheusMetrics.Configuration()
    configuration.maximumSeriesPerMetric = 3
    let metrics = PrometheusMetrics(configuration: configuration)
    for value in 0..<100 { Counter(label: "c_total", dimensions: [("id", "\(value)")], factory: metrics).increment() }
    Counter(label: "c_total", dimensions: [("id", "0")], factory: metrics).increment()
    let exposition = Exposition(metrics)
    #expect(exposition.lines(of: "c_total").count == 2 + 3 + 1)
    #expect(exposition[#"c_total{overflow="true"}"#] == 97)
    #expect(exposition[#"c_total{id="0"}"#] == 2)
    #expect(exposition[#"fanfare_metric_series_overflow_total{metric="c_total"}"#] == 97)
  }

  @Test func metricsWithUsedOrReservedNamesOrBeyondTheLimitAreRefused() {
    var configuration = PrometheusMetrics.Configuration()
    configuration.maximumMetrics = 2
    let metrics = PrometheusMetrics(configuration: configuration)
    Gauge(label: "a", factory: metrics).record(1)
    Recorder(label: "a", factory: metrics).record(2)
    Gauge(label: "process_open_fds", factory: metrics).record(-1)
    Gauge(label: "b", factory: metrics).record(1)
    Gauge(label: "c", factory: metrics).record(1)
    let exposition = Exposition(metrics)
    #expect(exposition["a"] == 1)
    #expect(exposition["b"] == 1)
    #expect(exposition["c"] == nil)
    #expect((exposition["process_open_fds"] ?? -1) > 0)
    #expect(exposition["fanfare_metrics_refused_total"] == 3)
  }

  @Test func handlesWithEqualLabelsShareASeriesUntilTheLastIsDestroyed() {
    let metrics = PrometheusMetrics()
    let first = Counter(label: "c_total", factory: metrics)
    let second = Counter(label: "c_total", factory: metrics)
    first.increment()
    second.increment()
    first.destroy()
    #expect(Exposition(metrics)["c_total"] == 2)
    second.destroy()
    #expect(Exposition(metrics)["c_total"] == nil)
  }

  @Test func expositionIsSortedAndIndependentOfRegistrationOrder() {
    let first = PrometheusMetrics()
    let second = PrometheusMetrics()
    let names = (0..<30).map { "m\($0)" }
    for (metrics, order) in [(first, names), (second, names.reversed())] {
      for name in order {
        for hub in order { Gauge(label: name, dimensions: [("hub", hub)], factory: metrics).record(1) }
      }
    }
    let lines = Exposition(first).lines.filter { !$0.hasPrefix("process_") }
    #expect(lines == Exposition(second).lines.filter { !$0.hasPrefix("process_") })
    let types = lines.filter { $0.hasPrefix("# TYPE") }
    #expect(types == types.sorted())
  }

  @Test func processAndBuildMetricsAreExported() throws {
    let build = BuildInformation(version: "1.2.3", swift: "6.3", librdkafka: "2.0.2")
    let exposition = Exposition(PrometheusMetrics(build: build))
    #expect(exposition[#"fanfare_build_info{librdkafka="2.0.2",swift="6.3",version="1.2.3"}"#] == 1)
    #expect(try #require(exposition["process_resident_memory_bytes"]) > 1_000_000)
    #expect(try #require(exposition["process_virtual_memory_bytes"]) > 1_000_000)
    #expect(try #require(exposition["process_open_fds"]) >= 3)
    #expect(try #require(exposition["process_max_fds"]) >= 3)
    #expect(try #require(exposition["process_cpu_seconds_total"]) >= 0)
    // After 2020, and not in the future.
    let now = Double(SystemWallClock().now().seconds)
    #expect((1_577_836_800...now + 1).contains(try #require(exposition["process_start_time_seconds"])))
  }
}

/// An exposition split into lines, to read single series.
struct Exposition {
  let lines: [String]

  init(_ metrics: PrometheusMetrics) {
    lines = metrics.exposition().split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
  }

  /// The value of the series with exactly this name and labels.
  subscript(series: String) -> Double? {
    lines.first { $0.hasPrefix(series + " ") }.flatMap { Double($0.dropFirst(series.count + 1)) }
  }

  /// The lines of the metrics with this prefix, with their comments.
  func lines(of name: String) -> [String] {
    lines.filter { $0.hasPrefix(name) || $0.hasPrefix("# HELP \(name)") || $0.hasPrefix("# TYPE \(name)") }
  }
}
