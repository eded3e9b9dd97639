/// One row of the table, or several.
protocol BenchScenario: Sendable {
  /// As in the report.
  var name: String { get }

  /// Measures. Throws when the product did something wrong: a measurement of that would be worthless.
  func run(_ bench: BenchRun) async throws -> [ScenarioReport]
}
