import FanfareCore

/// What the state machine wants to know, or to have known, about broadcasts and shared quotas. Each is asked again
/// until it is answered.
enum BroadcastQuestion: Sendable {
  /// Which devices does the audience begin with, what is wanted of the broadcast, and is it divided already? Tells a
  /// small audience from one that must be divided. Without a query: of a send that has expired, whose devices do not
  /// matter any more.
  case survey(Ticket, AudienceQuery?, BroadcastID, createdBefore: UnixTime)
  /// The broadcast is to have so many pages, unless that is fixed already.
  case plan(Ticket, BroadcastID, pages: Int)
  /// All segments of the broadcast are durable.
  case announce(Ticket, BroadcastID)
  /// Which of the next pages of a segment are finished?
  case finishedPages(Ticket, BroadcastID, Range<Int>)
  /// Which devices does a page go on with?
  case page(Ticket, AudienceQuery, RegistrationSlice, createdBefore: UnixTime, askedAt: Int64)
  /// When may so many devices be pushed to?
  case reserve(Ticket, Int, BroadcastID, perSecond: Int)
  /// When may so many devices be pushed to of what a page has put off and has come back?
  case permits(DispatchState.Parked, Int, BroadcastID, perSecond: Int)
  /// These pages are finished.
  case finish(Ticket, BroadcastID, [Int])
  /// What is wanted of these broadcasts?
  case courses([BroadcastID])
  /// What is wanted of the broadcast of which something was put off that has come back?
  case course(DispatchState.Parked, BroadcastID)
  /// Something else is wanted of a broadcast.
  case steer(BroadcastID, BroadcastControl)
  /// When may a sender make so many pushes of a quota that all workers share? Not before so much time from now, when
  /// the answer will be there.
  case quota(sender: Int, Int, PushQuota, lead: Duration)
}

/// What the store has said.
struct BroadcastAnswer: Sendable {
  /// What a question has led to.
  enum Outcome: Sendable {
    /// No devices where none were asked for; 0 pages where there is no plan.
    case survey(AudiencePage?, BroadcastControl.State, pages: Int)
    case devices(AudiencePage)
    case plan(pages: Int, isAnnounced: Bool)
    case pages([Int])
    case moment(UnixTime)
    case courses([BroadcastControl])
    /// It is known now.
    case noted
  }

  let question: BroadcastQuestion
  /// nil when the store could not be asked.
  let outcome: Outcome?
}
