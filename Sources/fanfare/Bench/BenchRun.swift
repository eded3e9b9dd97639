/// Runs the scenarios one after the other.
struct BenchRun: Sendable {
  let rig: BenchRig
  /// Nil where h2load is not installed: then there is nothing to compare with.
  let ceiling: Ceiling?

  /// Measures everything that was asked for; `report` gets each row as soon as there is one.
  static func run(_ options: BenchOptions, report: (ScenarioReport) -> Void) async throws {
    try await BenchRig.with(options) { rig in
      let bench = BenchRun(rig: rig, ceiling: Ceiling(rig))
      for scenario in options.scenarios {
        for row in try await make(scenario).run(bench) { report(row) }
      }
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
