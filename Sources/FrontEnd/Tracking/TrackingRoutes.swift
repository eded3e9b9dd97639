import FanfareCore
import HTTPServer
import HTTPTypes
import Operations

/// The routes to look up, pause, resume, cancel and slow down sends, for their senders.
///
/// `read:all` and `operate` extend them to the sends of others. To all other callers a send does not exist.
struct TrackingRoutes: Sendable {
  let access: AccessControl
  let history: any SendHistory
  let broadcasts: any BroadcastStore
  let schedule: any ScheduledSendStore
  let clock: any WallClock
  let maximumBodySize: Int

  /// Callers may always see and control their own sends, whatever their scopes.
  var routes: [Route] {
    [
      Route(.get, "api/sends", []) { try await list($0, by: $1) },
      Route(.get, "api/sends/{id}", []) { exchange, caller in
        let report = try await report(exchange, for: caller) { caller.maySee($0) }
        return try await answer(with: report)
      },
      controlling("pause", .paused), controlling("resume", .running), controlling("cancel", .cancelled),
      Route(.post, "api/sends/{id}/rate", []) { try await limit($0, by: $1) },
    ]
  }

  private func controlling(_ verb: String, _ state: BroadcastControl.State) -> Route {
    Route(.post, "api/sends/{id}/\(verb)", []) { exchange, caller in
      let report = try await controllable(exchange, by: caller)
      let answer = try await control(report, state)
      access.security.record(
        .sendSteered, for: exchange, by: caller,
        details: ["send.id": report.id.description, "state": state.rawValue, "own": "\(caller.owns(report))"])
      return answer
    }
  }

  private func limit(_ exchange: Exchange, by caller: Caller) async throws -> Answer {
    let report = try await controllable(exchange, by: caller)
    try MediaType.json.require(of: exchange)
    let rate = try BroadcastRate(reading: try await exchange.bytes(upTo: maximumBodySize))
    let answer = try await limit(report, to: rate)
    access.security.record(
      .sendSteered, for: exchange, by: caller,
      details: [
        "send.id": report.id.description, "maxPerSecond": rate.perSecond.map(String.init) ?? "unlimited",
        "own": "\(caller.owns(report))",
      ])
    return answer
  }

  /// Returns the send of the path's id if the caller may control it.
  private func controllable(_ exchange: Exchange, by caller: Caller) async throws -> SendReport {
    let report = try await report(exchange, for: caller) { caller.maySee($0) || caller.mayOperate }
    if !caller.owns(report) { try caller.require(anyOf: [.operate]) }
    return report
  }

  private func list(_ exchange: Exchange, by caller: Caller) async throws -> Answer {
    let query = try SendQuery(try Query(of: exchange), by: caller)
    // The history does not contain scheduled sends.
    guard query.state == .scheduled else {
      return .json(try await readingHistory { try await history.list(query) }.json, isPrivate: true)
    }
    var further = query
    further.limit += 1
    let waiting = try await schedule.waiting(further)
    let sends = waiting.prefix(query.limit)
    let shown = sends.filter { query.kind == nil || $0.send.isBroadcast == (query.kind == .broadcast) }
    let next = sends.count < waiting.count ? sends.last : nil
    let page = SendPage(
      sends: shown.map(SendReport.init),
      next: next.map { SendQuery.Position(acceptedAt: $0.scheduledAt, send: $0.send.id) })
    return .json(page.json, isPrivate: true)
  }

  private func answer(with report: SendReport) async throws -> Answer {
    var progress: BroadcastProgress?
    let now = clock.now()
    if report.isBroadcast { progress = try await broadcasts.progress(of: BroadcastID(report), at: now) }
    return .json(report.json(progress: progress, at: now), isPrivate: true)
  }

  /// Pauses, resumes or cancels a send. The answer has the requested state; anything else is a conflict.
  ///
  /// The status is 202 while it is unknown whether the request came in time.
  private func control(_ report: SendReport, _ state: BroadcastControl.State) async throws -> Answer {
    if report.state == .scheduled { return try await controlScheduled(report, state) }
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
    let held = try await broadcasts.control(broadcast, BroadcastControl(state, because: .caller), at: now)
    guard held.state == state else { throw Refusal(.alreadyEnded, "the send was cancelled before") }
    return try await controlled(report, broadcast, at: now)
  }

  /// Changes the rate of a broadcast that has not ended. Workers take it up with their next look at the control.
  private func limit(_ report: SendReport, to rate: BroadcastRate) async throws -> Answer {
    guard report.state == .accepted || report.state == .scheduled else { throw Self.alreadyEnded }
    guard report.isBroadcast, report.state == .accepted else {
      throw Refusal(.notSteerable, "only the rate of a broadcast that has been accepted can be changed")
    }
    let (broadcast, now) = (BroadcastID(report), clock.now())
    if let progress = try await broadcasts.progress(of: broadcast, at: now), progress.isFinished {
      throw Self.alreadyEnded
    }
    let held = try await broadcasts.limit(broadcast, to: rate, at: now)
    guard held.state != .cancelled else { throw Refusal(.alreadyEnded, "the send was cancelled before") }
    return try await controlled(report, broadcast, at: now)
  }

  private func controlled(_ report: SendReport, _ broadcast: BroadcastID, at now: UnixTime) async throws -> Answer {
    let progress = try await broadcasts.progress(of: broadcast, at: now)
    var answer = Answer.json(report.json(progress: progress, at: now), isPrivate: true)
    // Without pages a worker has not begun, and will respect the request; or the audience is small enough for a single
    // page, which may have been pushed already.
    if progress.map({ $0.pages == 0 }) ?? true { answer.status = .accepted }
    return answer
  }

  private func controlScheduled(_ report: SendReport, _ requested: BroadcastControl.State) async throws -> Answer {
    let state: ScheduledSend.State =
      switch requested {
      case .running: .held
      case .paused: .paused
      case .cancelled: .cancelled
      }
    guard let held = try await schedule.control(report.id, hub: report.hub, to: state, at: clock.now()),
      held.state == state
    else { throw Refusal(.alreadyEnded, "the send is due and can no longer be paused or cancelled") }
    return .json(SendReport(held).json(at: clock.now()), isPrivate: true)
  }

  /// Returns the send of the path's id if it is visible to the caller, else throws `.notFound`.
  ///
  /// The history lags behind the topics: right after its acceptance a send may not be found.
  private func report(
    _ exchange: Exchange, for caller: Caller, if isVisible: (SendReport) -> Bool
  ) async throws -> SendReport {
    guard let id = exchange.parameters["id"].flatMap({ SendID(String($0)) }),
      let report = try await report(of: id, hub: caller.hub.name), report.hub == caller.hub.name, isVisible(report)
    else { throw Refusal(.notFound, "there is no such send, or it was accepted a moment ago") }
    return report
  }

  /// The report of a send; nil if it is unknown.
  func report(of send: SendID, hub: HubName) async throws -> SendReport? {
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
    } catch let error as TooManyReads {
      throw error
    } catch {
      throw Refusal(.historyUnavailable, "the history of sends is unavailable at the moment")
    }
  }

  private static let alreadyEnded = Refusal(.alreadyEnded, "the send has already ended")
}

extension BroadcastRate {
  /// Reads `{"maxPerSecond":500}`; null is unlimited.
  init(reading body: ArraySlice<UInt8>) throws(Refusal) {
    var rate: BroadcastRate?
    try readBody(body) { (key, reader) throws(JSONError) in
      guard "maxPerSecond" ~= key else { throw reader.error("is not a known member") }
      guard rate == nil else { throw reader.duplicateMember() }
      rate = try reader.readNull() ? .unlimited : .perSecond(try SendFields.readRate(&reader))
    }
    guard let rate else { throw Refusal(.invalidField, "maxPerSecond is missing") }
    self = rate
  }
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

extension SendReport {
  /// Returns the report as JSON, with the progress of a broadcast. Unknown times and devices are null.
  func json(progress: BroadcastProgress? = nil, at now: UnixTime) -> [UInt8] {
    JSONWriter.object(capacity: 512) {
      $0.member("id", id)
      writeStatus(to: &$0)
      if let progress { $0.object("broadcast") { Self.write(progress, at: now, to: &$0) } }
      $0.array("timeline", Timeline(of: self).events) { $1.write(to: &$0) }
      $0.array("failures", failures.entries) { writer, failure in
        writer.object {
          $0.member("platform", failure.kind.platform.name)
          $0.member("outcome", failure.kind.outcome.rawValue)
          $0.member("reason", failure.kind.reason)
          $0.member("devices", failure.count)
        }
      }
      $0.array("devices", devices) { writer, device in writer.object { Self.write(device, to: &$0) } }
    }
  }

  /// Writes the report as an element of a list: with sender and audience, without devices.
  fileprivate func writeSummary(to writer: inout JSONWriter) {
    writer.object {
      $0.member("id", id)
      $0.member("sender", sender)
      $0.member("to", audience)
      writeStatus(to: &$0)
    }
  }

  private func writeStatus(to writer: inout JSONWriter) {
    writer.member("state", state.rawValue)
    writer.member("acceptedAt", acceptedAt)
    if let sendAt { writer.member("sendAt", sendAt) }
    if let control { writer.member("course", control.rawValue) }
    writer.member("settledAt", settledAt)
    writer.object("counts") {
      for platform in Platform.allCases {
        guard let outcomes = counts[platform], !outcomes.isEmpty else { continue }
        $0.object(named: platform.name) {
          for outcome in DeviceResult.Outcome.allCases {
            if let count = outcomes[outcome] { $0.member(named: outcome.rawValue, count) }
          }
        }
      }
    }
  }

  private static func write(_ progress: BroadcastProgress, at now: UnixTime, to writer: inout JSONWriter) {
    writer.member("pages", progress.pages)
    writer.member("finishedPages", progress.finishedPages)
    writer.member("course", progress.control.state.rawValue)
    writer.member("cause", progress.control.cause.rawValue)
    writer.member(
      "remainingSeconds", progress.remaining(at: now).map { Int(clamping: ($0 / .seconds(1)).rounded(.up)) })
    if let rate = progress.control.rate { writer.member("maxPerSecond", rate.perSecond) }
    guard !progress.segments.isEmpty else { return }
    writer.array("segments", progress.segments) { writer, segment in
      writer.object {
        $0.member("firstPage", segment.pages.lowerBound)
        $0.member("pages", segment.pages.count)
        $0.member("finishedPages", segment.finishedPages)
      }
    }
  }

  private static func write(_ device: DeviceResult, to writer: inout JSONWriter) {
    writer.member("registration", device.registration)
    writer.member("platform", device.platform.name)
    writer.member("outcome", device.outcome.rawValue)
    writer.member("reason", device.reason)
    writer.member("status", device.status)
    writer.member("attempts", device.attempts)
    writer.member("pushedAt", ifPresent: device.pushedAt)
    writer.member("answeredAt", ifPresent: device.answeredAt)
  }
}

extension SendPage {
  /// Returns the page as JSON with `sends` and `next`, the cursor of the next page or null.
  var json: [UInt8] {
    JSONWriter.object(capacity: 64 + sends.count * 256) {
      $0.array("sends", sends) { $1.writeSummary(to: &$0) }
      $0.member("next", next?.cursor)
    }
  }
}

extension SendQuery {
  /// Reads the parameters `state`, `kind`, `user`, `from`, `until`, `limit` and `cursor`.
  /// With `read:all` callers see all sends, others those they posted.
  ///
  /// Throws a refusal that names an invalid or unknown parameter, or the scope for another user's name.
  init(_ query: Query, by caller: Caller) throws(Refusal) {
    try query.requireOnly(["state", "kind", "user", "from", "until", "limit", "cursor"])
    self.init(hub: caller.hub.name, sender: caller.scopes.contains(.readAll) ? nil : caller.user)
    if let word = try query.value(of: "state") {
      guard let value = SendReport.State(rawValue: word) else {
        throw Refusal(
          .invalidParameter, "state must be one of " + SendReport.State.allCases.map(\.rawValue).joined(separator: ", ")
        )
      }
      state = value
    }
    if let word = try query.value(of: "kind") {
      guard let value = Kind(rawValue: word) else {
        throw Refusal(
          .invalidParameter, "kind must be one of " + Kind.allCases.map(\.rawValue).joined(separator: ", "))
      }
      kind = value
    }
    user = try query.userName("user")
    try caller.requireOwn(user)
    from = try query.time("from")
    until = try query.time("until")
    if let from, let until, from >= until { throw Refusal(.invalidParameter, "until must be later than from") }
    if let number = try query.limit(upTo: Self.maximumLimit) { limit = number }
    after = try query.cursor { Position(cursor: $0) }
  }
}

extension SendQuery.Position {
  /// The position as a cursor: its 24 bytes in hexadecimal.
  var cursor: String {
    Hexadecimal.text((0..<8).map { UInt8(truncatingIfNeeded: acceptedAt.milliseconds >> (56 - $0 * 8)) } + send.bytes)
  }

  /// Parses a `cursor`; returns nil for any other text.
  init?(cursor: String) {
    let digits = cursor.utf8.compactMap(Hexadecimal.value)
    guard digits.count == 48, cursor.utf8.count == 48 else { return nil }
    let bytes = stride(from: 0, to: 48, by: 2).map { digits[$0] << 4 | digits[$0 + 1] }
    guard let send = SendID(bytes: bytes[8...]) else { return nil }
    let milliseconds = bytes[..<8].reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
    self.init(acceptedAt: UnixTime(milliseconds: Int64(bitPattern: milliseconds)), send: send)
  }
}
