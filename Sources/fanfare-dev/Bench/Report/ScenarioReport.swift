import Roles

/// The result of one scenario, as a row of the table.
struct ScenarioReport: Sendable {
  /// A goal of the scenario, from the product's budget.
  enum Goal: Sendable {
    /// The minimum share of the ceiling's rate.
    case share(Double)
    /// The maximum CPU per item, in microseconds.
    case cpu(Double)
    /// The maximum CPU per item as a multiple of the ceiling's.
    case multiple(Double)
    /// The maximum memory of the measured process, in megabytes.
    case memory(Double)
    /// The minimum rate in items per second.
    case rate(Double)
    /// The maximum 99th percentile of the named latency, in milliseconds.
    case p99(String, Double)
  }

  var scenario: String
  /// The unit of the count.
  var unit: String
  /// Connections to the sink; nil if irrelevant.
  var connections: Int?
  var sink: String
  var pairs: [MeasuredPair] = []
  /// The latencies, if measured.
  var latencies: [(name: String, latency: Latency)] = []
  var goals: [Goal] = []
  /// Notes that explain the row.
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

  /// The report without CPU, memory and goals, which other runs at the same time make meaningless.
  var countsOnly: ScenarioReport {
    var report = self
    report.goals = []
    for pair in report.pairs.indices {
      report.pairs[pair].product = report.pairs[pair].product.withoutUsage
      report.pairs[pair].ceiling = report.pairs[pair].ceiling?.withoutUsage
    }
    return report
  }

  var rate: Double? { pairs.map(\.product.rate).median }
  var ceilingRate: Double? { pairs.compactMap { $0.ceiling?.rate }.median }
  var share: Double? { pairs.compactMap(\.share).median }
  var cpuMicroseconds: Double? { pairs.compactMap(\.product.cpuMicroseconds).median }
  var instructions: Double? { pairs.compactMap(\.product.instructionsEach).median }
  var multiple: Double? { pairs.compactMap(\.multiple).median }
  /// The peak of all runs, in megabytes.
  var peakMegabytes: Double? { pairs.compactMap(\.product.peakBytes).max().map { Double($0) / 1_000_000 } }

  /// The goals as text, and whether they were reached; nil if this run has no such figure.
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

/// The report as a Markdown table.
extension ScenarioReport {
  static let tableHead = """
    | scenario | conn. | a second | of the ceiling | CPU µs each | instructions each | × h2load | peak MB | goals |
    |---|---|---|---|---|---|---|---|---|
    """

  /// The row; a missed goal is marked with ✗.
  var tableRow: String {
    func text(_ value: Double?) -> String { value.map(\.text) ?? "–" }
    var rate = rate.map { Int($0).grouped } ?? "–"
    if let ceilingRate, share != nil { rate += " of \(Int(ceilingRate).grouped)" }
    let times = latencies.map {
      "\($0.name): p50 \($0.latency.p50.text), p99 \($0.latency.p99.text), p99.9 \($0.latency.p999.text) ms"
    }
    let goals = verdicts.map { "\($0.goal) \($0.isReached.map { $0 ? "✓" : "✗" } ?? "?")" }
    let share = share.map { "\(($0 * 100).text) %" } ?? "–"
    // nghttpd is the usual sink; the row names any other.
    let sinks = sink == "nghttpd" ? [] : ["sink: \(sink)"]
    let cells = [
      scenario, connections.map(String.init) ?? "–", rate, share, text(cpuMicroseconds),
      instructions.map { Int($0).grouped } ?? "–", text(multiple), text(peakMegabytes),
      (times + goals + notes + sinks).joined(separator: "; "),
    ]
    return "| " + cells.joined(separator: " | ") + " |"
  }
}

/// The report as JSON.
extension ScenarioReport: Encodable {
  private enum Key: String, CodingKey {
    case scenario, unit, connections, sink, perSecond, ceilingPerSecond, shareOfCeiling, cpuMicroseconds,
      instructions, multipleOfCeiling
    case peakMegabytes, pairs, latencies, goals, notes
  }

  private struct Pair: Encodable {
    let perSecond: Double
    let cpuMicroseconds: Double?
    let ceilingPerSecond: Double?
    let ceilingCPUMicroseconds: Double?
  }

  private struct Times: Encodable {
    let name: String
    let count: Int
    let p50, p99, p999, maximum: Double
  }

  private struct Verdict: Encodable {
    let goal: String
    let isReached: Bool?
  }

  func encode(to encoder: any Encoder) throws {
    var values = encoder.container(keyedBy: Key.self)
    try values.encode(scenario, forKey: .scenario)
    try values.encode(unit, forKey: .unit)
    try values.encodeIfPresent(connections, forKey: .connections)
    try values.encode(sink, forKey: .sink)
    try values.encodeIfPresent(rate, forKey: .perSecond)
    try values.encodeIfPresent(ceilingRate, forKey: .ceilingPerSecond)
    try values.encodeIfPresent(share, forKey: .shareOfCeiling)
    try values.encodeIfPresent(cpuMicroseconds, forKey: .cpuMicroseconds)
    try values.encodeIfPresent(instructions, forKey: .instructions)
    try values.encodeIfPresent(multiple, forKey: .multipleOfCeiling)
    try values.encodeIfPresent(peakMegabytes, forKey: .peakMegabytes)
    try values.encode(
      pairs.map {
        Pair(
          perSecond: $0.product.rate, cpuMicroseconds: $0.product.cpuMicroseconds, ceilingPerSecond: $0.ceiling?.rate,
          ceilingCPUMicroseconds: $0.ceiling?.cpuMicroseconds)
      }, forKey: .pairs)
    try values.encode(
      latencies.map {
        Times(
          name: $0.name, count: $0.latency.count, p50: $0.latency.p50, p99: $0.latency.p99, p999: $0.latency.p999,
          maximum: $0.latency.maximum)
      }, forKey: .latencies)
    try values.encode(verdicts.map { Verdict(goal: $0.goal, isReached: $0.isReached) }, forKey: .goals)
    try values.encode(notes, forKey: .notes)
  }
}
