import ArgumentParser

/// Runs the scenarios one after the other; a quick run runs several at the same time.
struct BenchRun: Sendable {
  let rig: BenchRig
  /// Nil if h2load is not installed.
  let ceiling: Ceiling?

  /// The number of scenarios at the same time in a quick run.
  ///
  /// They mostly wait for consumer groups to form.
  private static let quickAtOnce = 15

  /// Runs all selected scenarios and passes their rows to `report` in order.
  ///
  /// Throws `BenchError` with the scenario's name; `report` then gets the rows of all scenarios that ended before.
  static func run(_ options: BenchOptions, report: (ScenarioReport) -> Void) async throws {
    try await withThrowingTaskGroup(of: (Int, [ScenarioReport]).self) { group in
      var waiting = options.scenarios.enumerated().makeIterator()
      func begin() {
        guard let (number, scenario) = waiting.next() else { return }
        group.addTask { (number, try await run(scenario, options)) }
      }
      for _ in 0..<(options.isQuick ? quickAtOnce : 1) { begin() }
      var ended: [Int: [ScenarioReport]] = [:]
      var next = 0
      do {
        while let (number, rows) = try await group.next() {
          begin()
          ended[number] = rows
          while let rows = ended.removeValue(forKey: next) {
            for row in rows { report(row) }
            next += 1
          }
        }
      } catch {
        for (_, rows) in ended.sorted(by: { $0.key < $1.key }) { for row in rows { report(row) } }
        throw error
      }
    }
  }

  /// Runs one scenario.
  private static func run(_ scenario: BenchOptions.Scenario, _ options: BenchOptions) async throws -> [ScenarioReport] {
    do {
      let reports = try await BenchRig.with(options) { rig in
        try await make(scenario).run(BenchRun(rig: rig, ceiling: Ceiling(rig)))
      }
      return options.isQuick ? reports.map(\.countsOnly) : reports
    } catch {
      throw BenchError("\(scenario.rawValue): \(error)")
    }
  }

  /// Measures ceiling and product alternately.
  func pairs(
    ceiling: () async throws -> Measurement?, product: () async throws -> Measurement
  ) async throws -> [MeasuredPair] {
    var pairs: [MeasuredPair] = []
    for _ in 0..<rig.options.pairs {
      let ceiling = try await ceiling()
      pairs.append(MeasuredPair(ceiling: ceiling, product: try await product()))
    }
    return pairs
  }

  private static func make(_ scenario: BenchOptions.Scenario) -> any BenchScenario {
    switch scenario {
    case .ledger: LedgerScenario()
    case .engine: EngineScenario()
    case .single: SingleScenario()
    case .tag: BroadcastScenario.tag
    case .broadcast: BroadcastScenario.broadcast
    case .templateBroadcast: BroadcastScenario.templateBroadcast
    case .databaseBroadcast: BroadcastScenario.databaseBroadcast
    case .lanes: LaneScenario()
    case .workers: WorkersScenario()
    case .mixed: MixedScenario()
    case .latency: LatencyScenario()
    case .accept: AcceptScenario()
    case .farAway: FarAwayScenario()
    case .backlog: BacklogScenario()
    case .lookUp: LookUpScenario()
    case .imports: ImportScenario()
    }
  }
}

/// A scenario, which produces one or more rows of the table.
protocol BenchScenario: Sendable {
  /// The name in the report.
  var name: String { get }

  /// Runs the measurement. Throws when the product made an error, because the result would be invalid.
  func run(_ bench: BenchRun) async throws -> [ScenarioReport]
}

/// The options of a benchmark.
struct BenchOptions: Sendable {
  /// A measurement.
  enum Scenario: String, CaseIterable, Sendable, ExpressibleByArgument {
    case engine, single, tag, mixed, latency, accept, farAway = "far-away", backlog, broadcast, lanes, workers
    case templateBroadcast = "broadcast-template"
    case databaseBroadcast = "broadcast-postgresql"
    case lookUp = "look-up"
    case ledger
    case imports = "import"
  }

  var scenarios: [Scenario]
  /// The number of pairs of measurements of ceiling and product.
  var pairs: Int
  /// The numbers of connections to the sink to measure with.
  var connections: [Int]
  /// Whether to use small numbers, which check only correctness.
  var isQuick: Bool
  /// A cluster to use instead of the embedded one.
  var kafka: String?
  /// A sink to use instead of a private one: `host:port` and the file of the roots to trust.
  var sink: (host: String, port: Int, trustRoots: String?)?

  /// The numbers of registrations for look-up.
  var registrations: [Int] = []
  /// A PostgreSQL server to use instead of a private one: libpq's connection string.
  var postgres: String?

  /// The count, or a hundredth of it (at least `floor`) in a quick run.
  func scaled(_ count: Int, floor: Int = 100) -> Int { isQuick ? max(floor, count / 100) : count }
}

/// A failure that invalidates a measurement.
struct BenchError: Error, CustomStringConvertible {
  let description: String

  init(_ description: String) { self.description = description }
}
