/// The identity of a broadcast: a send within its hub.
package struct BroadcastID: Hashable, Sendable {
  package let hub: HubName
  /// `SendRequest.identity`: the send's id as its caller knows it, unless it is a replay. A replay
  /// has its own plan and finished pages, and is controlled apart from the original.
  package let send: SendID

  package init(hub: HubName, send: SendID) {
    self.hub = hub
    self.send = send
  }
}

/// Whether a broadcast runs, is paused or is cancelled, and the cause of that state.
package struct BroadcastControl: Hashable, Sendable {
  /// The workers' treatment of the broadcast.
  package enum State: String, CaseIterable, Sendable {
    /// Its pages are pushed.
    case running
    /// No new page is begun until it runs again.
    case paused
    /// No new page is ever begun.
    case cancelled
  }

  /// The cause of the state.
  package enum Cause: String, CaseIterable, Sendable {
    /// The acceptance of the send: the initial state.
    case accepted
    /// A decision of its sender or an operator.
    case caller
    /// The failure limit: too large a share of a page has failed.
    case failures
  }

  package let state: State
  package let cause: Cause
  /// The rate that is valid now; nil if only the send tells it.
  package var rate: BroadcastRate?

  package init(_ state: State, because cause: Cause, rate: BroadcastRate? = nil) {
    self.state = state
    self.cause = cause
    self.rate = rate
  }

  /// The state of a new broadcast.
  package static let initial = BroadcastControl(.running, because: .accepted)
}

/// The most pushes of a broadcast per second, of all workers together.
package enum BroadcastRate: Hashable, Sendable {
  case unlimited
  case perSecond(Int)

  /// The rate as a send gives it: nil is unlimited.
  package init(_ perSecond: Int?) { self = perSecond.map(Self.perSecond) ?? .unlimited }

  /// nil: unlimited.
  package var perSecond: Int? { if case .perSecond(let number) = self { number } else { nil } }
}

/// How a worker divides a broadcast.
package struct BroadcastPlan: Hashable, Sendable {
  package let pages: Int
  /// The number of segments of consecutive pages, which ``SegmentRecord/range(ofSegment:of:pages:)`` computes; 0 if it
  /// is unknown.
  package let segments: Int
  /// The rate of the send; nil if it is unknown.
  package let rate: BroadcastRate?

  package init(pages: Int, segments: Int = 0, rate: BroadcastRate? = nil) {
    self.pages = pages
    self.segments = segments
    self.rate = rate
  }
}

/// The progress of a broadcast.
package struct BroadcastProgress: Hashable, Sendable {
  package let control: BroadcastControl
  /// The number of pages; 0 before it is planned.
  package let pages: Int
  /// The number of finished pages.
  package let finishedPages: Int
  /// The number of pages finished within `window`, from which the remaining time is estimated.
  package let recentPages: Int
  /// When it was planned; nil before that.
  package let plannedAt: UnixTime?
  /// The segments in the order of their pages; empty before the plan, or if their number is not stored.
  package let segments: [Segment]

  /// The progress of one segment.
  package struct Segment: Hashable, Sendable {
    package let pages: Range<Int>
    package let finishedPages: Int

    package init(pages: Range<Int>, finishedPages: Int) {
      self.pages = pages
      self.finishedPages = finishedPages
    }
  }

  /// The period of `recentPages`.
  package static let window = Duration.seconds(30)

  package init(
    control: BroadcastControl, pages: Int, finishedPages: Int, recentPages: Int, plannedAt: UnixTime?,
    segments: [Segment] = []
  ) {
    self.control = control
    self.pages = pages
    self.finishedPages = finishedPages
    self.recentPages = recentPages
    self.plannedAt = plannedAt
    self.segments = segments
  }

  package var isFinished: Bool { pages > 0 && finishedPages >= pages }

  /// The estimated remaining time at the recent rate; nil if it is not planned, not running, or has
  /// no recent page.
  package func remaining(at now: UnixTime) -> Duration? {
    guard pages > 0, !isFinished, control.state == .running, recentPages > 0, let plannedAt else { return nil }
    let span = min(max(now - plannedAt, .milliseconds(1)), Self.window)
    let seconds = span / .seconds(1) * Double(pages.subtractingClamped(finishedPages)) / Double(recentPages)
    // A duration ends the process where it does not fit; a century is never.
    return .seconds(min(seconds, 100 * 366 * 86_400))
  }
}

/// Stores the plan, progress and control of broadcasts, shared by all workers and front ends of a
/// deployment.
///
/// It is in the registry's database. A row may be deleted a month after its broadcast was planned.
///
/// Every method may be called from any task and any process at any time. When a method returns, its change is durable
/// and visible to every later call. If a method throws `RegistryError`, it has changed nothing, unless
/// `isOutcomeUnknown`.
package protocol BroadcastStore: Sendable {
  /// Stores the plan of a broadcast, unless it has one. A rate that was set before is kept.
  /// Returns the valid numbers of pages and segments, and whether `announce` was called.
  func plan(
    _ broadcast: BroadcastID, _ plan: BroadcastPlan, at now: UnixTime
  ) async throws -> (pages: Int, segments: Int, isAnnounced: Bool)

  /// Records that every segment of the plan is durable: a worker that reads the send again has
  /// nothing left to do.
  func announce(_ broadcast: BroadcastID) async throws

  /// The finished pages of the range in ascending order.
  func finishedPages(of broadcast: BroadcastID, in range: Range<Int>) async throws -> [Int]

  /// Records that the pages are finished and must not be begun again. Idempotent.
  func finish(_ pages: [Int], of broadcast: BroadcastID, at now: UnixTime) async throws

  /// The control of each broadcast, in order; `BroadcastControl.initial` for an unknown one.
  func controls(of broadcasts: [BroadcastID]) async throws -> [BroadcastControl]

  /// Changes the control of a broadcast, planned or not.
  /// Returns the control that is valid from now on.
  ///
  /// A cancelled broadcast stays cancelled, and failures do not change a broadcast that its caller has paused. The rate
  /// stays as it is.
  func control(_ broadcast: BroadcastID, _ control: BroadcastControl, at now: UnixTime) async throws -> BroadcastControl

  /// Changes the rate of a broadcast, planned or not, unless it is cancelled.
  /// Returns the control that is valid from now on.
  func limit(_ broadcast: BroadcastID, to rate: BroadcastRate, at now: UnixTime) async throws -> BroadcastControl

  /// Reserves a number of pushes of a broadcast with the rate limit `perSecond`.
  /// The reservations of all workers follow one another.
  ///
  /// Returns the moment of the reservation, not before `now`. An unused reservation is not returned.
  func reserve(_ pushes: Int, of broadcast: BroadcastID, perSecond: Int, at now: UnixTime) async throws -> UnixTime

  /// The progress of a broadcast; nil if it is unknown.
  func progress(of broadcast: BroadcastID, at now: UnixTime) async throws -> BroadcastProgress?
}
