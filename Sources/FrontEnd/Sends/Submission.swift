import FanfareCore

/// A send on its way in.
struct Submission: Hashable, Sendable {
  /// As far ahead as a send may be scheduled: a year, leap day included.
  static let longestDelay: Duration = .seconds(366 * 86_400)

  /// The send, accepted when it was posted, or when a request was first made that this one repeats.
  let send: SendRequest
  /// Until when it is to be held; nil for one that goes at once.
  let heldUntil: UnixTime?
  /// When it was posted.
  let postedAt: UnixTime

  /// A send that is posted when it says it is accepted.
  init(send: SendRequest, heldUntil: UnixTime?) {
    self.init(send: send, heldUntil: heldUntil, postedAt: send.acceptedAt)
  }

  private init(send: SendRequest, heldUntil: UnixTime?, postedAt: UnixTime) {
    self.send = send
    self.heldUntil = heldUntil
    self.postedAt = postedAt
  }

  /// What is to be held.
  var scheduled: ScheduledSend? {
    heldUntil.map { ScheduledSend(send: send.accepted(at: $0), scheduledAt: postedAt) }
  }

  /// The same as a line of the request that the claim is for.
  func identified(by claim: SendClaim, line: Int = 0) -> Submission {
    let id = claim.sendID(line: line)
    // What is held counts as accepted at its own time, whenever it was posted.
    let send = heldUntil == nil ? send.accepted(as: id, at: claim.at) : send.identified(as: id)
    return Submission(send: send, heldUntil: heldUntil, postedAt: postedAt)
  }

  /// The same send, which announces a payload that is kept for so many seconds from its acceptance on.
  func announcing(_ id: SecurePayloadID, for seconds: Int) -> Submission {
    Submission(send: send.announcing(id, for: seconds), heldUntil: heldUntil, postedAt: postedAt)
  }
}
