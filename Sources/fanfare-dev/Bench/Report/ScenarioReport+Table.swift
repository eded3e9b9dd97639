import Roles

/// The rows as a person reads them.
extension ScenarioReport {
  /// The head of the table, in Markdown.
  static let tableHead = """
    | scenario | conn. | a second | of the ceiling | CPU µs each | × h2load | peak MB | goals |
    |---|---|---|---|---|---|---|---|
    """

  /// This row; a goal that was missed is marked with ✗.
  var tableRow: String {
    func text(_ value: Double?) -> String { value.map(\.text) ?? "–" }
    var rate = rate.map { Self.grouped(Int($0)) } ?? "–"
    if let ceilingRate, share != nil { rate += " of \(Self.grouped(Int(ceilingRate)))" }
    let times = latencies.map {
      "\($0.name): p50 \($0.latency.p50.text), p99 \($0.latency.p99.text), p99.9 \($0.latency.p999.text) ms"
    }
    let goals = verdicts.map { "\($0.goal) \($0.isReached.map { $0 ? "✓" : "✗" } ?? "?")" }
    let share = share.map { "\(($0 * 100).text) %" } ?? "–"
    // A reader expects the fastest; anything else is said.
    let sinks = sink == "nghttpd" ? [] : ["sink: \(sink)"]
    let cells = [
      scenario, connections.map(String.init) ?? "–", rate, share, text(cpuMicroseconds), text(multiple),
      text(peakMegabytes),
      (times + goals + notes + sinks).joined(separator: "; "),
    ]
    return "| " + cells.joined(separator: " | ") + " |"
  }

  private static func grouped(_ number: Int) -> String {
    var digits = Array(String(number))
    for index in stride(from: digits.count - 3, to: 0, by: -3) { digits.insert(",", at: index) }
    return String(digits)
  }
}
