import Simulation

/// The table of a run at scale, as `fanfare-dev simulate --scale` prints it.
struct ScaleTable: CustomStringConvertible {
  let report: ScaleReport

  var description: String {
    var rows = [["quantity", "value", ""]]
    rows += report.lines.map { [$0.name, $0.value, $0.note] }
    var uses = [["used at", "mean", "busiest", "there are", "needed"]]
    uses += report.uses.map {
      [$0.name, Self.percent($0.mean), Self.percent($0.peak), "\($0.count)", "\($0.needed)"]
    }
    let first = report.busiest.map { "saturated first: \($0.name), \(Self.percent($0.peak)) at its busiest\n" } ?? ""
    return """
      \(Self.table(rows))

      \(Self.table(uses))

      needed: for \(Self.percent(ScaleReport.target)) on average
      \(first)digest \(String(report.digest, radix: 16))
      """
  }

  /// The costs that all runs are computed from.
  static var costs: String {
    let costs = Costs()
    return table([["cost", "µs", "from"]] + Costs.sources.map { [$0.name, "\($0.cost(costs))", $0.origin] })
  }

  private static func percent(_ share: Double) -> String {
    let tenths = (share * 1000).rounded() / 10
    return tenths >= 10 ? "\(Int(tenths.rounded())) %" : "\(tenths) %"
  }

  /// Rows as a table in Markdown.
  private static func table(_ rows: [[String]]) -> String {
    var lines = rows.map { "| " + $0.joined(separator: " | ") + " |" }
    lines.insert("|" + rows[0].map { _ in "---|" }.joined(), at: 1)
    return lines.joined(separator: "\n")
  }
}
