/// Runs the scenarios: one after the other, or, where speed is not the question, several at once.
struct BenchRun: Sendable {
  let rig: BenchRig
  /// Nil where h2load is not installed: then there is nothing to compare with.
  let ceiling: Ceiling?

  /// Short scenarios under way at the same time. Nearly all of their time is waiting, for groups to form and to be
  /// left.
  private static let quickAtOnce = 15

  /// Measures everything that was asked for; `report` gets the rows in the order of the scenarios, and where one fails
  /// those of all that have ended before. Throws `BenchError`, which names the scenario.
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

  /// One scenario, in a rig of its own.
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

  /// Ceiling and product, turn about, as often as was asked for.
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
