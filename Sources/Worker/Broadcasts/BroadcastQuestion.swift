import FanfareCore

/// A question or an order to the store about broadcasts, shared quotas and hubs.
/// The worker repeats each one until the store answers it.
enum BroadcastQuestion: Sendable {
  /// Asks for the first devices of the audience, the broadcast's control state and its number of
  /// pages. These tell a small audience from one that must be divided. An expired send has no query: its devices do not
  /// matter.
  case survey(Ticket, AudienceQuery?, BroadcastID, createdBefore: UnixTime)
  /// Stores the broadcast's plan, unless it has one.
  case plan(Ticket, BroadcastID, BroadcastPlan)
  /// All segments of the broadcast are durable.
  case announce(Ticket, BroadcastID)
  /// Which of a segment's next pages are finished?
  case finishedPages(Ticket, BroadcastID, Range<Int>)
  /// The next devices of a page, at most `limit`.
  case page(Ticket, AudienceQuery, RegistrationSlice, createdBefore: UnixTime, limit: Int, askedAt: Int64)
  /// When may a number of devices of a page be pushed to?
  case reserve(Ticket, Int, BroadcastID, perSecond: Int)
  /// These pages are finished.
  case finish(Ticket, BroadcastID, [Int])
  /// The control states of these broadcasts?
  case controls([BroadcastID])
  /// Pauses, resumes or cancels a broadcast.
  case change(BroadcastID, BroadcastControl)
  /// When may a sender make this number of pushes of a quota that all workers share?
  /// Not before `lead` from now, when the answer will have arrived.
  case quota(sender: Int, Int, PushQuota, lead: Duration)
  /// The hubs that have registrations?
  case hubs

  /// Asks the stores. Throws their errors.
  func ask(
    _ registry: any DeviceRegistry, _ broadcasts: any BroadcastStore & PushQuotaStore,
    limits: WorkerConfiguration.Broadcasts,
    at now: UnixTime
  ) async throws -> BroadcastAnswer.Outcome {
    switch self {
    case .survey(_, let query, let broadcast, let createdBefore):
      var devices: AudiencePage?
      if let query {
        devices = try await registry.page(
          query, of: .whole, createdBefore: createdBefore, limit: limits.undividedDevices)
      }
      // After the devices: a small audience is dispatched as soon as this answer is there.
      let progress = try await broadcasts.progress(of: broadcast, at: now)
      return .survey(devices, progress?.control ?? .initial, pages: progress?.pages ?? 0)
    case .plan(_, let broadcast, let plan):
      let plan = try await broadcasts.plan(broadcast, plan, at: now)
      return .plan(pages: plan.pages, segments: plan.segments, isAnnounced: plan.isAnnounced)
    case .announce(_, let broadcast):
      try await broadcasts.announce(broadcast)
      return .noted
    case .finishedPages(_, let broadcast, let range):
      return .pages(try await broadcasts.finishedPages(of: broadcast, in: range))
    case .page(_, let query, let slice, let createdBefore, let limit, _):
      return .devices(try await registry.page(query, of: slice, createdBefore: createdBefore, limit: limit))
    case .reserve(_, let pushes, let broadcast, let perSecond):
      return .moment(try await broadcasts.reserve(pushes, of: broadcast, perSecond: perSecond, at: now))
    case .finish(_, let broadcast, let pages):
      try await broadcasts.finish(pages, of: broadcast, at: now)
      return .noted
    case .controls(let ids):
      return .controls(try await broadcasts.controls(of: ids))
    case .change(let broadcast, let control):
      return .controls([try await broadcasts.control(broadcast, control, at: now)])
    case .quota(_, let pushes, let quota, let lead):
      return .moment(try await broadcasts.reserve(pushes, of: quota, at: now + lead))
    case .hubs:
      return .hubs(try await registry.hubs())
    }
  }
}

/// The store's answer.
struct BroadcastAnswer: Sendable {
  enum Outcome: Sendable {
    /// No devices when none were asked for; 0 pages when there is no plan.
    case survey(AudiencePage?, BroadcastControl, pages: Int)
    case devices(AudiencePage)
    /// 0 segments when the plan does not tell.
    case plan(pages: Int, segments: Int, isAnnounced: Bool)
    case pages([Int])
    case moment(UnixTime)
    case controls([BroadcastControl])
    case hubs([HubName])
    /// The store has noted it.
    case noted
  }

  let question: BroadcastQuestion
  /// nil when the store could not be asked.
  let outcome: Outcome?
}
