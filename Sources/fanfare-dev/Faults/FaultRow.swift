/// The result of one fault scenario.
struct FaultRow: Sendable {
  let fault: String
  /// Sends that a front end accepted.
  let accepted: Int
  /// Settled sends, of all sends on the topic.
  let settled: Int
  /// Sends that did not settle within the longest wait.
  let inFlight: Int
  /// Accepted sends that are missing from the ledger, or that the audit reports as lost.
  let lost: Int
  /// Repeated pushes.
  let repeated: Int
  /// Repeated pushes for each injury, sorted; empty if they cannot be attributed.
  let repeatedEach: [Int]
  /// The limit on repeated pushes.
  let repeatLimit: RepeatLimit
  /// Contradictions between audit, ledger, devices and front ends, and pushes with a wrong outcome.
  let accountingErrors: Int
  /// Further figures for the table; nil for none.
  let observed: String?
  /// Seconds from the end of the injury until all accepted sends were settled.
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

  /// Whether all sends settled, none was lost or miscounted, and the repeats are within the limit.
  var isGood: Bool { lost == 0 && inFlight == 0 && accountingErrors == 0 && isWithinRepeats }

  private var isWithinRepeats: Bool { repeatLimit.allows(repeated: repeated, each: repeatedEach) }
}

extension FaultRow: Encodable {
  // The JSON omits the limit: the exit status tells whether it was exceeded.
  private enum CodingKeys: CodingKey {
    case fault, accepted, settled, inFlight, lost, repeated, repeatedEach, accountingErrors, observed, secondsToRecover
  }
}

/// The number of pushes that a fault may repeat.
enum RepeatLimit: Sendable {
  /// None: every answer arrived, and the worker could record it.
  case none
  /// At most this many for each injury, a quarter of it for half of the injuries, and no others.
  case each(most: Int)
  /// Any number: answers or their records were lost during the fault.
  ///
  /// The row itself checks the guarantees that hold even then.
  case some

  /// Whether the total, and the number for each injury if known, are within the limit.
  func allows(repeated: Int, each: [Int]) -> Bool {
    switch self {
    case .none: repeated == 0
    case .some: true
    case .each(let most):
      each.allSatisfy { $0 <= most } && Self.median(of: each) <= most / 4 && repeated <= each.reduce(0, +)
    }
  }

  /// The upper median; 0 for an empty list.
  static func median(of numbers: [Int]) -> Int { numbers.isEmpty ? 0 : numbers.sorted()[numbers.count / 2] }
}
