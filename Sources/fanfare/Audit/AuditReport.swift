/// What the audit found: all numbers as of one moment, which lies between its beginning and its end.
struct AuditReport: Encodable, Equatable {
  /// The most problems that are listed.
  static let maximumProblems = 1000

  /// Sends on the sends topic, each once.
  var accepted = 0
  /// Those that have ended.
  var settled = 0
  /// Those that have not, and that somebody has still to work on.
  var inFlight = 0
  /// How many of those have a rest in a retry topic that waits for its time.
  var waitingInRetryTopics = 0
  /// Records that were set aside, each once.
  var deadLettered = 0
  /// Status records that count for nothing: second ones of their part, or of another attempt than the one that ended
  /// the send.
  var repeated = 0
  /// Accepted sends that have not ended, and of which nothing waits any more.
  var lost = 0
  /// Sends with a status record that were never accepted.
  var unannounced = 0
  /// Poisoned records that nobody has set aside.
  var notSetAside = 0
  /// Status records and dead letters that cannot be read.
  var unreadable = 0
  /// Records that the cluster has deleted before they were read.
  var deletedUnread = 0
  /// Sends with a status whose own record is so old that the cluster may have deleted it: not wrong, and in none of the
  /// numbers above.
  var recordDeleted = 0
  /// Accepted sends so old that the cluster may have deleted their status: not wrong, and neither settled, in flight
  /// nor lost.
  var statusDeleted = 0
  /// What is wrong, ordered by kind and place; at most `maximumProblems` of it.
  var problems: [AuditProblem] = []

  /// Whether nothing is wrong.
  var isSound: Bool { lost + unannounced + notSetAside + unreadable + deletedUnread == 0 }

  /// For people.
  var text: [String] {
    var lines = [
      "accepted \(accepted) = settled \(settled) + in flight \(inFlight)" + (lost > 0 ? " + LOST \(lost)" : "")
        + (statusDeleted > 0 ? " + without a status for their age \(statusDeleted)" : ""),
      "waiting in retry topics \(waitingInRetryTopics), dead letters \(deadLettered), repeated statuses \(repeated)",
    ]
    if recordDeleted > 0 {
      lines.append(
        "The beginning of the sends topic is deleted: \(recordDeleted) sends with a status are not counted above.")
    }
    if statusDeleted > 0 {
      lines.append(
        "The beginning of the status topic is deleted: sends as old as that may have had their status there.")
    }
    let wrong = [
      (lost, "sends are lost"), (unannounced, "sends have a status and were never accepted"),
      (notSetAside, "records could not be read and are not in the dead-letter topic"),
      (unreadable, "records of the status and dead-letter topics cannot be read"),
      (deletedUnread, "records were deleted unread"),
    ]
    for (count, what) in wrong where count > 0 { lines.append("WRONG: \(count) \(what)") }
    for problem in problems {
      let place = "\(problem.topic)/\(problem.partition)/\(problem.offset)"
      let send = problem.id.map { " \($0) of hub \(problem.hub ?? "")" } ?? ""
      lines.append("  \(problem.kind.rawValue) \(place)\(send)")
    }
    if isSound { lines.append("Nothing is wrong.") }
    return lines
  }
}
