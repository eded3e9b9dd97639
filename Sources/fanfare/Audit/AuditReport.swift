import FanfareCore
import Roles

/// The result of an audit. All numbers hold for one moment between its beginning and its end.
struct AuditReport: Encodable, Equatable {
  /// The most problems that are listed.
  static let maximumProblems = 1000

  /// Sends on the sends topic, each once.
  var accepted = 0
  /// Settled sends.
  var settled = 0
  /// Sends with a record that waits to be processed.
  var inFlight = 0
  /// Sends in flight with a deferred record in a retry topic.
  var waitingInRetryTopics = 0
  /// Dead-lettered records, each once.
  var deadLettered = 0
  /// Repeated status records: those of a part or an attempt that had already settled.
  var repeated = 0
  /// Accepted sends that are neither settled nor in flight.
  var lost = 0
  /// Sends with a status record that were never accepted.
  var unannounced = 0
  /// Poisoned records that were not dead-lettered.
  var notSetAside = 0
  /// Status records and dead letters that cannot be read.
  var unreadable = 0
  /// Records that the cluster deleted before they were read.
  var deletedUnread = 0
  /// Sends with a status whose own record the cluster may have deleted for its age.
  ///
  /// They are no problem, and no other number includes them.
  var recordDeleted = 0
  /// Accepted sends whose status record the cluster may have deleted for its age.
  ///
  /// They are no problem, and of the other numbers only `accepted` includes them.
  var statusDeleted = 0
  /// Lost sends that are acknowledged. Of the other numbers only `accepted` includes them.
  var lostAcknowledged = 0
  /// The problems, sorted by kind and place; at most `maximumProblems`.
  var problems: [AuditProblem] = []
  /// The problems at places that an operator has acknowledged, with the reasons. The numbers of problems do not include
  /// them.
  var acknowledged: [AuditProblem] = []

  /// Whether there is no problem.
  var isSound: Bool { lost + unannounced + notSetAside + unreadable + deletedUnread == 0 }

  /// The report as text.
  var text: [String] {
    var lines = [
      "accepted \(accepted) = settled \(settled) + in flight \(inFlight)" + (lost > 0 ? " + LOST \(lost)" : "")
        + (statusDeleted > 0 ? " + status deleted for its age \(statusDeleted)" : "")
        + (lostAcknowledged > 0 ? " + lost and acknowledged \(lostAcknowledged)" : ""),
      "waiting in retry topics \(waitingInRetryTopics), dead letters \(deadLettered), repeated statuses \(repeated)",
    ]
    if recordDeleted > 0 {
      lines.append(
        "The beginning of the sends topic is deleted: \(recordDeleted) sends with a status are not counted above.")
    }
    if statusDeleted > 0 {
      lines.append(
        "The beginning of the status topic is deleted: sends of that age may have had their status there.")
    }
    let wrong = [
      (lost, "sends are lost"), (unannounced, "sends have a status and were never accepted"),
      (notSetAside, "records are unreadable and were not dead-lettered"),
      (unreadable, "records of the status and dead-letter topics are unreadable"),
      (deletedUnread, "records were deleted unread"),
    ]
    for (count, what) in wrong where count > 0 { lines.append("WRONG: \(count) \(what)") }
    for problem in problems { lines.append("  \(problem)") }
    if !acknowledged.isEmpty { lines.append("Acknowledged and not counted: \(acknowledged.count)") }
    for problem in acknowledged { lines.append("  \(problem): \(Printable.line(problem.reason ?? ""))") }
    if isSound { lines.append("Nothing is wrong.") }
    return lines
  }
}

/// A problem that the audit found.
struct AuditProblem: Encodable, Equatable {
  /// The kind of problem.
  enum Kind: String, Encodable, CaseIterable {
    /// An accepted send that is neither settled nor in flight. The place is its record's.
    case lost
    /// A dead-lettered send that has no status record. The place is its record's.
    case deadLetterWithoutStatus
    /// A status record of a send that was never accepted. The place is the status record's.
    case unannounced
    /// An unreadable record that was not dead-lettered.
    case notSetAside
    /// A record of the status or the dead-letter topic that cannot be read.
    case unreadable
    /// Records that the cluster deleted unread. The place is the first one's.
    case deletedUnread
  }

  let kind: Kind
  /// The send's id; nil if the problem concerns no send.
  let id: String?
  /// The send's hub; nil if the problem concerns no send.
  let hub: String?
  let topic: String
  let partition: Int32
  let offset: Int64
  /// Why an operator has acknowledged it; nil if nobody has.
  var reason: String?
}

extension AuditProblem: CustomStringConvertible {
  /// The kind, the place, and the send.
  var description: String {
    let send = id.map { " \($0) of hub \(hub ?? "")" } ?? ""
    return "\(kind.rawValue) \(topic)/\(partition)/\(offset)\(send)"
  }
}

/// A record's place in the log.
struct AuditPlace: Hashable {
  let topic: String
  let partition: Int32
  let offset: Int64
}

/// A send's id within its hub.
struct SendKey: Hashable {
  let hub: HubName
  let id: SendID
}
