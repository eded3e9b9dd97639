import Worker

/// What one injury has led to.
struct FaultRow: Sendable, Encodable {
  let fault: String
  /// Sends that a front end called accepted.
  let accepted: Int
  /// Sends settled, of all that are on the topic.
  let settled: Int
  /// Sends that wait for their time when nothing else moves any more.
  let inFlight: Int
  /// Sends accepted of which nothing became, or that the audit misses.
  let lost: Int
  /// Pushes that a device got a second time.
  let repeated: Int
  /// The same for each injury, sorted, where they can be told apart.
  let repeatedEach: [Int]
  /// Where the audit, the ledger and the front end's word do not agree.
  let accountingErrors: Int
  /// What else there was to see; nil where the numbers say it all.
  let observed: String?
  /// From the end of the injury until everything accepted was settled.
  let secondsToRecover: Double

  /// The head of the table, in Markdown.
  static let tableHead = """
    | fault | accepted | settled | lost | repeated pushes | accounting errors | recovered after |
    |---|---|---|---|---|---|---|
    """

  /// This row.
  var tableRow: String {
    var repeats = "\(repeated)"
    if let last = repeatedEach.last {
      repeats += " (each time: median \(medianRepeated), most \(last), of \(repeatedEach.count))"
    }
    let settled = inFlight == 0 ? "\(settled)" : "\(settled), \(inFlight) in flight"
    let seconds = (secondsToRecover * 10).rounded() / 10
    let name = observed.map { "\(fault) (\($0))" } ?? fault
    return "| \(name) | \(accepted) | \(settled) | \(lost) | \(repeats) | \(accountingErrors) | \(seconds) s |"
  }

  /// Whether the promises were kept. What a kill repeats was in flight, and in most cases little of it.
  var isGood: Bool {
    let inFlight = WorkerConfiguration().maximumPushes
    return lost == 0 && accountingErrors == 0 && repeatedEach.last ?? 0 <= inFlight && medianRepeated <= inFlight / 10
  }

  private var medianRepeated: Int { repeatedEach.isEmpty ? 0 : repeatedEach[(repeatedEach.count - 1) / 2] }
}
