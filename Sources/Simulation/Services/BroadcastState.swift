import FanfareCore
import Registry

/// The registry's row of a broadcast, and its finished pages.
struct BroadcastState {
  private(set) var plan: BroadcastPlan?
  private var plannedAt: UnixTime?
  private(set) var isAnnounced = false
  /// When each finished page was finished first.
  private(set) var finished: [Int: UnixTime] = [:]
  private(set) var control = BroadcastControl.initial
  /// The end of the reservations of its rate, in microseconds since 1970.
  private var reserved: Int64 = 0
  /// Whether it has a row: finished pages alone have none.
  private var isKnown = false

  mutating func plan(_ wanted: BroadcastPlan, at now: UnixTime) -> (pages: Int, segments: Int, isAnnounced: Bool) {
    if plan == nil {
      plan = wanted
      plannedAt = now
      control.rate = control.rate ?? wanted.rate
      isKnown = true
    }
    return (plan?.pages ?? 0, plan?.segments ?? 0, isAnnounced)
  }

  mutating func announce() { isAnnounced = isKnown }

  mutating func finish(_ pages: [Int], at now: UnixTime) {
    for page in pages where finished[page] == nil { finished[page] = now }
  }

  mutating func steer(_ wanted: BroadcastControl) -> BroadcastControl {
    isKnown = true
    if control.accepts(wanted) {
      control = BroadcastControl(wanted.state, because: wanted.cause, rate: control.rate)
    }
    return control
  }

  mutating func limit(to rate: BroadcastRate) -> BroadcastControl {
    isKnown = true
    if control.state != .cancelled { control.rate = rate }
    return control
  }

  mutating func reserve(_ pushes: Int, perSecond: Int, at now: UnixTime) -> UnixTime {
    isKnown = true
    let start = PushQuota.start(behind: reserved, at: now)
    reserved = PushQuota.end(of: pushes, from: start, perSecond: perSecond)
    return UnixTime(microsecondsRoundedUp: start)
  }

  func progress(at now: UnixTime) -> BroadcastProgress? {
    guard isKnown else { return nil }
    let (pages, segments) = (plan?.pages ?? 0, plan?.segments ?? 0)
    let recent = now + (.zero - BroadcastProgress.window)
    let bySegment = Dictionary(grouping: finished) { page, _ in
      ((page + 1) * max(1, segments) - 1) / max(1, pages)
    }
    return BroadcastProgress(
      control: control, pages: pages, segments: segments, plannedAt: plannedAt,
      finished: bySegment.map { ($0, $1.count, $1.count { $0.value > recent }) })
  }
}
