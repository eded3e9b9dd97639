import Roles
import Simulation

/// The sum of several runs, as a table.
struct SimulationSum: CustomStringConvertible {
  private let start = ContinuousClock.now
  private(set) var runs = 0
  private(set) var violations = 0
  private(set) var failed = 0
  private var virtualTime = Duration.zero
  private var (sends, pushes, repeated, deferred, checks): (Int, Int, Int, Int, Int) = (0, 0, 0, 0, 0)
  private var faults: [String: Int] = [:]
  private(set) var coverage = Coverage()

  mutating func add(_ report: Simulation.Report) {
    runs += 1
    violations += report.violations.count
    if !report.violations.isEmpty { failed += 1 }
    virtualTime += report.virtualTime
    sends += report.counts.accepted
    pushes += report.counts.pushes
    repeated += report.counts.repeated
    deferred += report.counts.deferred
    checks += report.counts.checks
    coverage.add(report.coverage)
    for (fault, count) in report.faults { faults[fault.rawValue, default: 0] += count }
  }

  /// One line while further runs follow.
  var progress: String {
    "\(runs.grouped) runs, \(Self.text(virtualTime)) virtual, \(sends.grouped) sends, "
      + "\(faults.values.reduce(0, +).grouped) faults, \(failed) runs failed"
  }

  var description: String {
    let real = ContinuousClock.now - start
    let kinds = faults.sorted { ($1.value, $0.key) < ($0.value, $1.key) }
    var rows: [(name: String, count: String, rest: String)] = [
      ("runs", runs.grouped, failed == 0 ? "all passed" : "\(failed) failed"),
      ("virtual time", Self.text(virtualTime), "in \(Self.text(real)): \((virtualTime / real).text) times as fast"),
      ("sends", sends.grouped, "\(deferred.grouped) parts deferred"),
      ("pushes", pushes.grouped, "\(repeated.grouped) of them repeated"),
      ("faults", faults.values.reduce(0, +).grouped, kinds.isEmpty ? "" : "by kind:"),
    ]
    rows += kinds.map { ("  \($0.key)", $0.value.grouped, "") }
    rows += [
      ("checks", checks.grouped, "of promises and invariants"),
      ("broken promises", violations == 0 ? "none" : violations.grouped, ""),
    ]
    rows += coverage.lists.map { list in
      (list.name, list.reached.grouped, "of \(list.rows.count) reached" + Self.text(missed: list.missed))
    }
    let (names, counts) = (rows.map(\.name.count).max() ?? 0, rows.map(\.count.count).max() ?? 0)
    return rows.map { row in
      let line =
        row.name + String(repeating: " ", count: names + 2 - row.name.count + counts - row.count.count) + row.count
      return row.rest.isEmpty ? line : line + "  " + row.rest
    }.joined(separator: "\n")
  }

  /// The first of the rows that no run has reached.
  private static func text(missed: [String]) -> String {
    guard !missed.isEmpty else { return "" }
    let most = 12
    let rest = missed.count > most ? ", and \(missed.count - most) more" : ""
    return ", not " + missed.prefix(most).joined(separator: ", ") + rest
  }

  /// A duration in the largest unit of which it has at least two.
  private static func text(_ duration: Duration) -> String {
    let units: [(name: String, seconds: Double)] = [
      ("years", 365.25 * 86_400), ("days", 86_400), ("h", 3_600), ("min", 60),
    ]
    let seconds = duration / .seconds(1)
    guard let unit = units.first(where: { seconds >= 2 * $0.seconds }) else { return "\(seconds.text) s" }
    return "\((seconds / unit.seconds).text) \(unit.name)"
  }
}
