import FanfareCore
import HTTPTypes
import Hummingbird

/// The routes to look up, pause, resume and cancel sends, for their senders and for operators.
///
/// To all other callers a send does not exist.
struct TrackingRoutes: Sendable {
  let access: AccessControl
  let history: any SendHistory
  let broadcasts: any BroadcastStore
  let schedule: any ScheduledSendStore
  let clock: any WallClock

  /// Adds the routes to a hub's root.
  func add(to routes: some RouterMethods<FrontEndContext>) {
    routes.get("api/sends") { try await list($0, $1) }
    routes.get("api/sends/{id}") { try await report($0, $1) }
    routes.post("api/sends/{id}/pause") { try await steer($0, $1, .paused) }
    routes.post("api/sends/{id}/resume") { try await steer($0, $1, .running) }
    routes.post("api/sends/{id}/cancel") { try await steer($0, $1, .cancelled) }
  }

  private func list(_ request: Request, _ context: FrontEndContext) async throws -> Response {
    let caller = try await access.admit(request, context)
    let query = try SendQuery(try Query(of: request), by: caller)
    // The history does not contain scheduled sends.
    guard query.state == .scheduled else {
      return .json(try await readingHistory { try await history.list(query) }.json, isPrivate: true)
    }
    var further = query
    further.limit += 1
    let waiting = try await schedule.waiting(further)
    let sends = waiting.prefix(query.limit)
    let next = sends.count < waiting.count ? sends.last : nil
    let page = SendPage(
      sends: sends.map(SendReport.init),
      next: next.map { SendQuery.Position(acceptedAt: $0.scheduledAt, send: $0.send.id) })
    return .json(page.json, isPrivate: true)
  }

  private func report(_ request: Request, _ context: FrontEndContext) async throws -> Response {
    try await answer(with: try await report(context, for: try await access.admit(request, context)))
  }

  private func answer(with report: SendReport) async throws -> Response {
    var progress: BroadcastProgress?
    let now = clock.now()
    if report.isBroadcast { progress = try await broadcasts.progress(of: BroadcastID(report), at: now) }
    return .json(report.json(progress: progress, at: now), isPrivate: true)
  }

  /// Pauses, resumes or cancels a send. The answer has the requested state; anything else is a conflict.
  ///
  /// The status is 202 while it is unknown whether the request came in time.
  private func steer(
    _ request: Request, _ context: FrontEndContext, _ state: BroadcastControl.State
  ) async throws -> Response {
    let report = try await report(context, for: try await access.admit(request, context))
    if report.state == .scheduled { return try await steerScheduled(report, state) }
    // A caller that missed the answer to its first request may cancel again.
    if report.state == .cancelled, state == .cancelled { return try await answer(with: report) }
    guard report.state == .accepted else { throw Self.alreadyEnded }
    guard report.isBroadcast else {
      throw Refusal(
        .notSteerable,
        "the send goes to one user and is being sent; only broadcasts and scheduled sends can be paused, resumed or "
          + "cancelled")
    }
    let (broadcast, now) = (BroadcastID(report), clock.now())
    // The history lags behind the broadcast's pages.
    if let progress = try await broadcasts.progress(of: broadcast, at: now), progress.isFinished {
      guard state == .cancelled, progress.control.state == .cancelled else { throw Self.alreadyEnded }
      return .json(report.json(progress: progress, at: now), isPrivate: true)
    }
    let held = try await broadcasts.steer(broadcast, BroadcastControl(state, because: .caller), at: now)
    guard held.state == state else { throw Refusal(.alreadyEnded, "the send was cancelled before") }
    let progress = try await broadcasts.progress(of: broadcast, at: now)
    var answer = Response.json(report.json(progress: progress, at: now), isPrivate: true)
    // Without pages a worker has not begun, and will respect the request; or the audience is small enough for a single
    // page, which may have been pushed already.
    if progress.map({ $0.pages == 0 }) ?? true { answer.status = .accepted }
    return answer
  }

  private func steerScheduled(_ report: SendReport, _ requested: BroadcastControl.State) async throws -> Response {
    let state: ScheduledSend.State =
      switch requested {
      case .running: .held
      case .paused: .paused
      case .cancelled: .cancelled
      }
    guard let held = try await schedule.steer(report.id, hub: report.hub, to: state, at: clock.now()),
      held.state == state
    else { throw Refusal(.alreadyEnded, "the send is due and can no longer be paused or cancelled") }
    return .json(SendReport(held).json(at: clock.now()), isPrivate: true)
  }

  /// Returns the send of the path's id if the caller may see it, else throws `.notFound`.
  ///
  /// The history lags behind the topics: right after its acceptance a send may not be found.
  private func report(_ context: FrontEndContext, for caller: Caller) async throws -> SendReport {
    guard let id = context.parameters["id"].flatMap({ SendID(String($0)) }),
      let report = try await report(of: id, hub: caller.hub.name), report.hub == caller.hub.name,
      caller.maySee(report)
    else { throw Refusal(.notFound, "there is no such send, or it was accepted a moment ago") }
    return report
  }

  private func report(of send: SendID, hub: HubName) async throws -> SendReport? {
    do {
      if let report = try await readingHistory({ try await history.report(of: send, hub: hub) }) { return report }
    } catch {
      // Scheduled sends can be cancelled even while the history is unavailable.
      guard let held = try await schedule.scheduled(send, hub: hub), held.isWaiting else { throw error }
      return SendReport(held)
    }
    return try await schedule.scheduled(send, hub: hub).map(SendReport.init)
  }

  // Untyped, because `throws(Refusal)` crashes the optimizer of Swift 6.3.1 here.
  private func readingHistory<Value>(_ body: () async throws -> Value) async throws -> Value {
    do {
      return try await body()
    } catch {
      throw Refusal(.historyUnavailable, "the history of sends is unavailable at the moment")
    }
  }

  private static let alreadyEnded = Refusal(.alreadyEnded, "the send has already ended")
}

extension BroadcastID {
  fileprivate init(_ report: SendReport) {
    self.init(hub: report.hub, send: report.id)
  }
}

extension ScheduledSend {
  /// Whether it is neither fired nor cancelled.
  fileprivate var isWaiting: Bool { state == .held || state == .paused }
}

extension SendReport {
  /// Reports a send of the schedule, until the history contains it.
  fileprivate init(_ held: ScheduledSend) {
    let send = held.send
    let state: SendReport.State =
      switch held.state {
      case .held, .paused: .scheduled
      case .fired: .accepted
      case .cancelled: .cancelled
      }
    self.init(
      id: send.id, hub: send.hub, state: state, sender: send.sender, audience: send.audience.text,
      isBroadcast: send.isBroadcast, sendAt: held.due,
      control: held.isWaiting ? (held.state == .paused ? .paused : .running) : nil, acceptedAt: held.scheduledAt,
      settledAt: nil, counts: [:], devices: nil)
  }
}
