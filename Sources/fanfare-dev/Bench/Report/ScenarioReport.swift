import Roles

/// What one scenario has shown, as a row of the table.
struct ScenarioReport: Sendable {
  /// What the scenario is to reach; from the product's own budget.
  enum Goal: Sendable {
    /// The least share of the ceiling's rate.
    case share(Double)
    /// The most CPU per item, in microseconds.
    case cpu(Double)
    /// The most CPU per item as a multiple of the ceiling's.
    case multiple(Double)
    /// The most memory of the measured process, in megabytes.
    case memory(Double)
    /// The fewest items a second.
    case rate(Double)
    /// The longest 99th percentile of what the name says, in milliseconds.
    case p99(String, Double)
  }

  var scenario: String
  /// What is counted.
  var unit: String
  /// To the sink; nil where that is not a question.
  var connections: Int?
  var sink: String
  var pairs: [MeasuredPair] = []
  /// Distributions of times, where latency is the question.
  var latencies: [(name: String, latency: Latency)] = []
  var goals: [Goal] = []
  /// What a reader must know to understand the row.
  var notes: [String] = []

  init(
    scenario: String, unit: String, connections: Int? = nil, sink: String, pairs: [MeasuredPair] = [],
    goals: [Goal] = []
  ) {
    self.scenario = scenario
    self.unit = unit
    self.connections = connections
    self.sink = sink
    self.pairs = pairs
    self.goals = goals
  }

  /// The same without what a run beside others cannot tell: CPU and memory, part of which are others', and whether
  /// goals were reached.
  var countsOnly: ScenarioReport {
    var report = self
    report.goals = []
    for pair in report.pairs.indices {
      (report.pairs[pair].product.cpuSeconds, report.pairs[pair].product.peakBytes) = (nil, nil)
      report.pairs[pair].ceiling?.cpuSeconds = nil
    }
    return report
  }

  /// Medians over the pairs.
  var rate: Double? { pairs.map(\.product.rate).median }
  var ceilingRate: Double? { pairs.compactMap { $0.ceiling?.rate }.median }
  var share: Double? { pairs.compactMap(\.share).median }
  var cpuMicroseconds: Double? { pairs.compactMap(\.product.cpuMicroseconds).median }
  var multiple: Double? { pairs.compactMap(\.multiple).median }
  /// The highest of all runs, in megabytes.
  var peakMegabytes: Double? { pairs.compactMap(\.product.peakBytes).max().map { Double($0) / 1_000_000 } }

  /// Each goal in words, and whether it was reached; nil where this run cannot tell.
  var verdicts: [(goal: String, isReached: Bool?)] {
    goals.map { goal in
      switch goal {
      case .share(let least): ("≥ \((least * 100).text) % of the ceiling", share.map { $0 >= least })
      case .cpu(let most): ("≤ \(most.text) µs", cpuMicroseconds.map { $0 <= most })
      case .multiple(let most): ("≤ \(most.text) × the ceiling's CPU", multiple.map { $0 <= most })
      case .memory(let most): ("≤ \(most.text) MB", peakMegabytes.map { $0 <= most })
      case .rate(let least): ("≥ \(least.text) \(unit)/s", rate.map { $0 >= least })
      case .p99(let name, let most):
        ("\(name) p99 ≤ \(most.text) ms", latencies.first { $0.name == name }.map { $0.latency.p99 <= most })
      }
    }
  }
}
