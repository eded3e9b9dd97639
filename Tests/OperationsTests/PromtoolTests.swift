import Foundation
import Metrics
import Testing

@testable import Operations

@Suite struct PromtoolTests {
  private static let path = ["/usr/bin/promtool", "/usr/local/bin/promtool"].first {
    FileManager.default.isExecutableFile(atPath: $0)
  }

  /// `promtool` accepts every metric of the catalogue, and metrics of other libraries.
  @Test(.enabled(if: path != nil, "promtool is not installed; Debian has it in `prometheus`"), .timeLimit(.minutes(1)))
  func expositionPassesPromtool() async throws {
    var configuration = PrometheusMetrics.Configuration()
    configuration.maximumSeriesPerMetric = 2
    let metrics = PrometheusMetrics(
      configuration: configuration, build: BuildInformation(version: "1.2.3", swift: "6.3", librdkafka: "2.0.2"))
    for name in MetricCatalogue.help.keys where !name.hasPrefix("process_") {
      for hub in ["default", "a\"b\\c\nd", "Ünïcode"] {
        let dimensions = [("hub", hub), ("platform", "apns")]
        if name.hasSuffix("_total") {
          Counter(label: name, dimensions: dimensions, factory: metrics).increment()
        } else if name.hasSuffix("_seconds"), !name.contains("timestamp"), !name.contains("lag") {
          Timer(label: name, dimensions: dimensions, factory: metrics).recordMilliseconds(12)
        } else {
          Gauge(label: name, dimensions: dimensions, factory: metrics).record(1.5)
        }
      }
    }
    Counter(label: "hb.requests", dimensions: [("hb.uri", "/api/*")], factory: metrics).increment()
    Timer(label: "http.server.request.duration", factory: metrics).recordSeconds(1)
    let answer = try await check(metrics.exposition())
    #expect(answer.output == "")
    #expect(answer.status == 0)
  }

  /// Shows that `promtool` does find problems; otherwise the test above would prove nothing.
  @Test(.enabled(if: path != nil, "promtool is not installed; Debian has it in `prometheus`"), .timeLimit(.minutes(1)))
  func promtoolRefusesAMetricWithoutHelp() async throws {
    let answer = try await check("# TYPE a counter\na 1\n")
    #expect(answer.status != 0)
    #expect(answer.output.contains("no help text"))
  }

  private func check(_ exposition: String) async throws -> (status: Int32, output: String) {
    let process = Process()
    process.executableURL = URL(filePath: try #require(Self.path))
    process.arguments = ["check", "metrics"]
    let directory = FileManager.default.temporaryDirectory
    let input = directory.appending(path: "promtool-\(UUID()).in")
    let output = directory.appending(path: "promtool-\(UUID()).out")
    defer {
      // A file left in the temporary directory does no harm.
      try? FileManager.default.removeItem(at: input)
      try? FileManager.default.removeItem(at: output)
    }
    try Data(exposition.utf8).write(to: input)
    try Data().write(to: output)
    process.standardInput = try FileHandle(forReadingFrom: input)
    let log = try FileHandle(forWritingTo: output)
    process.standardOutput = log
    process.standardError = log
    try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
      process.terminationHandler = { _ in continuation.resume() }
      do { try process.run() } catch { continuation.resume(throwing: error) }
    }
    return (process.terminationStatus, String(decoding: try Data(contentsOf: output), as: UTF8.self))
  }
}
