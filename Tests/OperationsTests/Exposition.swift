@testable import Operations

/// A text exposition taken apart again, so that a test can ask for one series.
struct Exposition {
  let lines: [String]

  init(_ metrics: PrometheusMetrics) {
    lines = metrics.exposition().split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
  }

  /// The value of the series written exactly so, labels included.
  subscript(series: String) -> Double? {
    lines.first { $0.hasPrefix(series + " ") }.flatMap { Double($0.dropFirst(series.count + 1)) }
  }

  /// The lines of the metric whose name begins so, comments included.
  func lines(of name: String) -> [String] {
    lines.filter { $0.hasPrefix(name) || $0.hasPrefix("# HELP \(name)") || $0.hasPrefix("# TYPE \(name)") }
  }
}
