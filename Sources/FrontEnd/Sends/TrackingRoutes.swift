import FanfareCore
import HTTPTypes
import Hummingbird

/// The routes by which sends are watched and steered, by those who posted them and by operators. To everybody else a
/// send is as if it had never been.
struct TrackingRoutes: Sendable {
  let gate: Gate
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
    let caller = try await gate.admit(request, context, as: nil)
    let query = try SendQuery(try Query(of: request), by: caller)
    // What waits for its time is no part of the history yet.
    guard query.state == .scheduled else { return Self.answer(try await asking { try await history.list(query) }.json) }
    var further = query
    further.limit += 1
    let waiting = try await schedule.waiting(further)
    let sends = waiting.prefix(query.limit)
    let next = sends.count < waiting.count ? sends.last : nil
    return Self.answer(
      SendPage(
        sends: sends.map(SendReport.init),
        next: next.map { SendQuery.Position(acceptedAt: $0.scheduledAt, send: $0.send.id) }
      ).json)
  }

  private func report(_ request: Request, _ context: FrontEndContext) async throws -> Response {
    try await answer(with: try await known(context, by: try await gate.admit(request, context, as: nil)))
  }

  private func answer(with report: SendReport) async throws -> Response {
    var progress: BroadcastProgress?
    let now = clock.now()
    if report.isBroadcast { progress = try await broadcasts.progress(of: BroadcastID(report), at: now) }
    return Self.answer(report.json(progress: progress, at: now))
  }

  /// Answers with what holds from now on, which is what was asked for: everything else is a conflict. The status is 202
  /// while nobody can know whether it was asked for in time.
  private func steer(_ request: Request, _ context: FrontEndContext, _ course: BroadcastControl.State) async throws
    -> Response
  {
    let report = try await known(context, by: try await gate.admit(request, context, as: nil))
    if report.state == .scheduled { return try await steer(report, to: course) }
    // As a caller asks who has not had the answer to the first cancel.
    if report.state == .cancelled, course == .cancelled { return try await answer(with: report) }
    guard report.state == .accepted else { throw Self.alreadyEnded }
    guard report.isBroadcast else {
      throw Refusal(
        .notSteerable, "the send is on its way to one user; only broadcasts and scheduled sends can be steered")
    }
    let (broadcast, now) = (BroadcastID(report), clock.now())
    // The history trails the pages.
    if let progress = try await broadcasts.progress(of: broadcast, at: now), progress.isFinished {
      guard course == .cancelled, progress.control.state == .cancelled else { throw Self.alreadyEnded }
      return Self.answer(report.json(progress: progress, at: now))
    }
    let held = try await broadcasts.steer(broadcast, BroadcastControl(course, because: .caller), at: now)
    guard held.state == course else { throw Refusal(.alreadyEnded, "the send was cancelled before") }
    let progress = try await broadcasts.progress(of: broadcast, at: now)
    var answer = Self.answer(report.json(progress: progress, at: now))
    // Whoever takes the send finds what is wanted; but a small audience is dispatched in one piece, and may just have
    // been.
    if progress.map({ $0.pages == 0 }) ?? true { answer.status = .accepted }
    return answer
  }

  private func steer(_ report: SendReport, to course: BroadcastControl.State) async throws -> Response {
    let state: ScheduledSend.State =
      switch course {
      case .running: .held
      case .paused: .paused
      case .cancelled: .cancelled
      }
    guard let held = try await schedule.steer(report.id, hub: report.hub, to: state, at: clock.now()),
      held.state == state
    else {
      throw Refusal(.alreadyEnded, "the send's time has come; it cannot be held back any more")
    }
    return Self.answer(SendReport(held).json(at: clock.now()))
  }

  /// The send of the path, if the caller may know of it. Right after a send was accepted the history may not know it
  /// yet, for it trails the topics: the answer is then the same 404 as for a send that never was.
  private func known(_ context: FrontEndContext, by caller: Caller) async throws -> SendReport {
    guard let id = context.parameters["id"].flatMap({ SendID(String($0)) }),
      let report = try await report(of: id, hub: caller.hub.name),
      report.hub == caller.hub.name, caller.posted(report) || caller.roles.contains(.operator)
    else { throw Refusal(.notFound, "there is no such send, or it is not known yet") }
    return report
  }

  private func report(of send: SendID, hub: HubName) async throws -> SendReport? {
    do {
      if let report = try await asking({ try await history.report(of: send, hub: hub) }) { return report }
    } catch {
      // What waits can be cancelled while the history cannot be read.
      guard let held = try await schedule.scheduled(send, hub: hub), held.isWaiting else { throw error }
      return SendReport(held)
    }
    return try await schedule.scheduled(send, hub: hub).map(SendReport.init)
  }

  // Not `throws(Refusal)`: with that the optimizer of Swift 6.3.1 crashes.
  private func asking<Value>(_ body: () async throws -> Value) async throws -> Value {
    do {
      return try await body()
    } catch {
      throw Refusal(.historyUnavailable, "what happened to sends cannot be looked up now")
    }
  }

  private static func answer(_ json: [UInt8]) -> Response {
    var response = Response.json(json)
    response.headers[.cacheControl] = "no-store"
    return response
  }

  private static let alreadyEnded = Refusal(.alreadyEnded, "the send has ended already")
}

extension BroadcastID {
  fileprivate init(_ report: SendReport) {
    self.init(hub: report.hub, send: report.id)
  }
}
