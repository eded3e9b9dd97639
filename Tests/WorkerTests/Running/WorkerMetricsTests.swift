import FanfareCore
import Metrics
import Operations
import Testing

@testable import Worker

/// The metrics that alerts watch.
@Suite struct WorkerMetricsTests {
  private let exporter = PrometheusMetrics()

  private func metrics() -> WorkerMetrics {
    withMetricsFactory(exporter) { WorkerMetrics(table: SenderTable([.default: [:]]), group: "fanfare.workers") }
  }

  private func value(_ series: String) -> String? {
    exporter.exposition().split(separator: "\n").first { $0.hasPrefix(series + " ") }?.split(separator: " ").last
      .map(String.init)
  }

  /// Prometheus sees no increase in a series that begins with its first event.
  @Test func countersOfAlertsAreZeroBeforeTheFirstEvent() {
    _ = metrics()
    for reason in DeadLetter.Reason.allCases {
      #expect(value("fanfare_dead_letters_total{reason=\"\(reason.rawValue)\"}") == "0")
    }
    for platform in Platform.allCases {
      #expect(value("fanfare_pushes_failed_total{hub=\"default\",platform=\"\(platform.name)\"}") == "0")
    }
    #expect(value("fanfare_broadcasts_paused_total{hub=\"default\"}") == "0")
  }

  @Test func everyOutcomeButDeliveryAndAGoneDeviceIsAFailure() {
    var metrics = metrics()
    var tallies = Tallies()
    tallies.results = DeviceResult.Outcome.allCases.map {
      Tallies.Result(sender: 0, outcome: $0, reason: "", latency: 1)
    }
    withMetricsFactory(exporter) { metrics.count(tallies) }
    let platform = Platform.allCases[0].name
    #expect(value("fanfare_pushes_failed_total{hub=\"default\",platform=\"\(platform)\"}") == "4")
    #expect(
      value("fanfare_accept_to_outcome_seconds_count{hub=\"default\",platform=\"\(platform)\"}")
        == "\(DeviceResult.Outcome.allCases.count)")
  }

  @Test func pausedBroadcastIsCountedInItsHub() {
    let metrics = metrics()
    metrics.countPause(ofBroadcastIn: .default)
    metrics.countPause(ofBroadcastIn: HubName("elsewhere")!)
    #expect(value("fanfare_broadcasts_paused_total{hub=\"default\"}") == "1")
  }
}
