import FanfareCore

/// A send on its way in.
struct Submission: Hashable, Sendable {
  /// As far ahead as a send may be scheduled: a year, leap day included.
  static let longestDelay: Duration = .seconds(366 * 86_400)

  /// The send, accepted now.
  let send: SendRequest
  /// Until when it is to be held; nil for one that goes at once.
  let heldUntil: UnixTime?

  /// What is to be held.
  var scheduled: ScheduledSend? {
    heldUntil.map { ScheduledSend(send: send.accepted(at: $0), scheduledAt: send.acceptedAt) }
  }

  /// The same under another id.
  func identified(as id: SendID) -> Submission {
    Submission(send: send.identified(as: id), heldUntil: heldUntil)
  }

  /// The same send, which announces a payload that is kept for so many seconds from its acceptance on.
  func announcing(_ id: SecurePayloadID, for seconds: Int) -> Submission {
    Submission(send: send.announcing(id, for: seconds), heldUntil: heldUntil)
  }
}
