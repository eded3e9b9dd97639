import FanfareCore

@testable import Worker

/// A store of broadcasts in memory, which answers the dispatcher's questions.
struct BroadcastDesk {
  var plans: [BroadcastID: Int] = [:]
  /// The numbers of segments of the plans that have one.
  var segments: [BroadcastID: Int] = [:]
  var announced: Set<BroadcastID> = []
  var finished: [BroadcastID: Set<Int>] = [:]
  var controls: [BroadcastID: BroadcastControl] = [:]
  /// From when on the next pushes of a broadcast may be made.
  var next: [BroadcastID: UnixTime] = [:]
  /// Where the reservations of quotas end, in microseconds since 1970; nil where every one is for at once.
  var quotas: [PushQuota: Int64]?
  /// The hubs that have registrations.
  var hubs: [HubName] = [.default]
  /// Whether it can be asked.
  var isDown = false

  /// The store's answer; nil while it cannot be asked.
  mutating func outcome(
    of question: BroadcastQuestion, registry: [Audience: [Target]], limits: WorkerConfiguration.Broadcasts,
    at now: UnixTime
  ) -> BroadcastAnswer.Outcome? {
    guard !isDown else { return nil }
    switch question {
    case .survey(_, let query, let broadcast, _):
      return .survey(
        query.map { page($0, .whole, limit: limits.undividedDevices, registry) },
        controls[broadcast] ?? .initial,
        pages: plans[broadcast] ?? 0)
    case .page(_, let query, let slice, _, let limit, _): return .devices(page(query, slice, limit: limit, registry))
    case .plan(_, let broadcast, let plan):
      if plans[broadcast] == nil { (plans[broadcast], segments[broadcast]) = (plan.pages, plan.segments) }
      return .plan(
        pages: plans[broadcast] ?? 0, segments: segments[broadcast] ?? 0, isAnnounced: announced.contains(broadcast))
    case .announce(_, let broadcast):
      announced.insert(broadcast)
      return .noted
    case .finishedPages(_, let broadcast, let range):
      return .pages(finished[broadcast, default: []].filter(range.contains).sorted())
    case .finish(_, let broadcast, let pages):
      finished[broadcast, default: []].formUnion(pages)
      return .noted
    case .reserve(_, let count, let broadcast, let perSecond):
      let start = max(next[broadcast] ?? now, now)
      next[broadcast] = start + .milliseconds(1000 * count / perSecond)
      return .moment(start)
    case .controls(let broadcasts): return .controls(broadcasts.map { controls[$0] ?? .initial })
    case .change(let broadcast, let control):
      controls[broadcast] = control
      return .controls([control])
    case .hubs: return .hubs(hubs)
    case .quota(_, let pushes, let quota, let lead):
      guard let end = quotas.map({ $0[quota] ?? 0 }) else { return .moment(now) }
      let reservation = quota.reservation(of: pushes, behind: end, at: now + lead)
      quotas?[quota] = reservation.end
      return .moment(UnixTime(milliseconds: (reservation.start + 999) / 1000))
    }
  }

  private func page(_ query: AudienceQuery, _ slice: RegistrationSlice, limit: Int, _ registry: [Audience: [Target]])
    -> AudiencePage
  {
    let all = (registry[query.audience] ?? []).filter { slice.contains($0.registration) }.sorted {
      $0.registration < $1.registration
    }
    let examined = all.prefix(limit)
    return AudiencePage(
      targets: examined.filter { query.platforms.contains($0.platform) }, examined: examined.count,
      last: all.count > limit ? examined.last?.registration : nil)
  }
}
