import FanfareCore
import HTTPServer
import HTTPTypes

/// Divides a send in local time into scheduled sends, one for each moment at which a time zone in use has that time.
struct LocalSends: Sendable {
  /// More than the time zones that there are. With the tags of a caller's expression within
  /// `TagExpression.Limits.records`.
  private static let maximumZones = 800

  let intake: SendIntake
  let idempotency: Idempotency
  let directory: any RegistrationDirectory

  /// Accepts the parts, all or none, and answers their ids.
  ///
  /// A part whose time has passed is due at once. Under a claim a repetition gets the same ids and, once the claim is
  /// settled, the same answer. Throws what `SendIntake.accept` throws.
  func accept(
    _ submission: Submission, at time: LocalSendTime, under claim: SendClaim?, by caller: Caller
  ) async throws -> Answer {
    let hub = caller.hub.name
    if let claim, try await isHeld(claim, time, hub: hub) {
      if !claim.isSettled { try await idempotency.settle(claim) }
      return Self.answer(try await accepted(under: claim, time, hub: hub))
    }
    let zones = try await zones(of: hub)
    let parts = LocalPart.all(of: time, zones: zones).map { part in
      (
        part,
        submission.part(
          part.audience(within: submission.send.audience, all: zones),
          id: claim?.sendID(line: part.line) ?? Identities.send(at: submission.receivedAt),
          at: max(part.instant, submission.receivedAt))
      )
    }
    for (_, part) in parts { try intake.check(part.send).get() }
    for result in try await intake.accept(parts.map(\.1), into: caller.hub, asWhole: true) { try result.get() }
    if let claim { try await idempotency.settle(claim) }
    return Self.answer(
      parts.map { part, submission in
        AcceptedPart(
          id: submission.send.id, at: submission.send.acceptedAt,
          zones: part.zones.isEmpty ? [time.defaultZone] : part.zones, isRest: part.zones.isEmpty)
      })
  }

  /// A part as it is answered.
  private struct AcceptedPart {
    let id: SendID
    let at: UnixTime
    let zones: [String]
    let isRest: Bool
  }

  /// Whether an earlier request with the claim has put its parts into the schedule: all or none. It may have ended
  /// before it settled the claim. The parts must not be computed again: a zone that has come into use since belongs
  /// to the part without zones, which has the devices of all others.
  private func isHeld(_ claim: SendClaim, _ time: LocalSendTime, hub: HubName) async throws -> Bool {
    if claim.isSettled { return true }
    let rest = LocalPart(instant: time.instant(in: time.defaultZone), zones: [])
    return try await intake.schedule.scheduled(claim.sendID(line: rest.line), hub: hub) != nil
  }

  /// The parts under a claim: of all that there may be, those in the schedule.
  private func accepted(under claim: SendClaim, _ time: LocalSendTime, hub: HubName) async throws -> [AcceptedPart] {
    var answers: [AcceptedPart] = []
    let possible = try await zones(of: hub) + TimeZoneName.all
    for part in LocalPart.all(of: time, zones: possible) {
      guard let held = try await intake.schedule.scheduled(claim.sendID(line: part.line), hub: hub) else { continue }
      var zones = [time.defaultZone]
      if !part.zones.isEmpty, case .expression(let expression) = held.send.audience {
        zones = expression.tags.compactMap(TimeZoneName.named)
      }
      answers.append(AcceptedPart(id: held.send.id, at: held.due, zones: zones, isRest: part.zones.isEmpty))
    }
    return answers
  }

  /// The zones of the hub's devices.
  private func zones(of hub: HubName) async throws -> [String] {
    try await directory.tags(withPrefix: Tag.timeZonePrefix, hub: hub, limit: Self.maximumZones)
      .compactMap(TimeZoneName.named)
  }

  private static func answer(_ parts: [AcceptedPart]) -> Answer {
    let document = JSONWriter.object(capacity: 64 + parts.count * 160) {
      $0.member("state", SendReport.State.scheduled.rawValue)
      $0.array("parts", parts) { json, part in
        json.object {
          $0.member("id", part.id)
          $0.member("sendAt", part.at)
          $0.member("timeZones", part.zones)
          if part.isRest { $0.member("isRest", true) }
        }
      }
    }
    return .json(document, status: .accepted)
  }
}
