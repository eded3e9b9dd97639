import FanfareCore

/// A batch of questions to the registry, and what each answer is for.
struct LookUp: Sendable {
  /// What an answer is for.
  enum Purpose: Sendable {
    /// The devices of an item that has none yet.
    case devices
    /// Whether a device still belongs to whom the send is for.
    case recheck
  }

  /// One use of an answer.
  struct Entry: Sendable {
    let purpose: Purpose
    let ticket: Ticket
    /// Which of `queries` answers it.
    let query: Int
  }

  /// Uptime when it was asked: what the answer says was true no later than the answer, and perhaps only then.
  let askedAt: Int64
  var queries: [AudienceQuery] = []
  var entries: [Entry] = []
}

/// What the registry said.
struct LookUpAnswer: Sendable {
  let lookUp: LookUp
  /// The devices per query; nil when the registry could not be asked.
  let targets: [[Target]]?
}
