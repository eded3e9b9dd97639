/// What one injury has led to.
struct FaultRow: Sendable {
  let fault: String
  /// Sends that a front end called accepted.
  let accepted: Int
  /// Sends settled, of all that are on the topic.
  let settled: Int
  /// Sends without an end, although all the time that anything may take has passed.
  let inFlight: Int
  /// Sends accepted of which nothing became, or that the audit misses.
  let lost: Int
  /// Pushes that a device got a second time.
  let repeated: Int
  /// The same for each injury, sorted, where they can be told apart.
  let repeatedEach: [Int]
  /// How many that may be.
  let repeatLimit: RepeatLimit
  /// Where the audit, the ledger, the devices and the front end's word do not agree, and pushes that should have ended
  /// otherwise.
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
      repeats += " (each time: median \(RepeatLimit.median(of: repeatedEach)), most \(last), of \(repeatedEach.count))"
    }
    if !isWithinRepeats { repeats += ", TOO MANY" }
    let settled = inFlight == 0 ? "\(settled)" : "\(settled), \(inFlight) in flight"
    let seconds = (secondsToRecover * 10).rounded() / 10
    let name = observed.map { "\(fault) (\($0))" } ?? fault
    return "| \(name) | \(accepted) | \(settled) | \(lost) | \(repeats) | \(accountingErrors) | \(seconds) s |"
  }

  /// Whether the promises were kept, and everything has come to an end.
  var isGood: Bool { lost == 0 && inFlight == 0 && accountingErrors == 0 && isWithinRepeats }

  private var isWithinRepeats: Bool { repeatLimit.allows(repeated: repeated, each: repeatedEach) }
}

extension FaultRow: Encodable {
  // Without the limit: the exit status says whether it was kept.
  private enum CodingKeys: CodingKey {
    case fault, accepted, settled, inFlight, lost, repeated, repeatedEach, accountingErrors, observed, secondsToRecover
  }
}
