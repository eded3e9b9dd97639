package import FanfareCore
package import HTTPServer
import HTTPTypes
import Operations

extension FrontEndOperations {
  /// Accepts a send. Returns its id when it is durable: in Kafka, or until `moment` in the schedule.
  ///
  /// With an `Idempotency-Key` among the request's header fields it is repeatable; `pieces` are what makes two requests
  /// the same, such as path, header fields and body.
  /// Throws a refusal that names a missing member or the scope that the caller lacks, and the errors of stores.
  package func send(
    _ fields: SendFields, heldUntil moment: UnixTime? = nil, identifiedBy pieces: [String], by caller: Caller,
    _ exchange: Exchange
  ) async throws -> SendID {
    try await caller.hub.metrics.countingRefusals {
      let key = try IdempotencyKey(of: exchange)
      let now = clock.now()
      let submission = try await Submission(
        fields, at: moment, from: SendOrigin(exchange, by: caller, at: now), isRepeatable: key != nil
      ).resolved(by: templates)
      return try await idempotency.run(
        key, for: Fingerprint(pieces), by: caller, at: now, id: submission.send.id
      ) { try await intake.accept(submission.identified(as: $0), into: caller.hub) }
    }
  }

  /// Accepts several sends of one request, if the caller's quotas allow all. Returns the id of the batch when all are
  /// durable; the sends have the ids `SendID.member(of:at:)`.
  ///
  /// If one of them fails, others may have been accepted. With an `Idempotency-Key` the request can be repeated.
  package func send(
    each fields: [SendFields], identifiedBy pieces: [String], by caller: Caller, _ exchange: Exchange
  ) async throws -> SendID {
    try await caller.hub.metrics.countingRefusals {
      let key = try IdempotencyKey(of: exchange)
      for send in fields { try caller.requireScopes(toSend: send) }
      try caller.hub.quotas.requireRoomInBurst(for: fields.count, by: caller.user)
      let now = clock.now()
      let origin = SendOrigin(exchange, by: caller, at: now)
      var claim: SendClaim?
      if let key { claim = try await idempotency.claim(key, for: Fingerprint(pieces), by: caller, at: now) }
      let batch = claim?.sendID() ?? Identities.send(at: now)
      if claim?.isSettled == true { return batch }
      var submissions: [Submission] = []
      for (index, send) in fields.enumerated() {
        let submission = try Submission(send, id: .member(of: batch, at: index), from: origin)
        submissions.append(try await submission.resolved(by: templates))
      }
      for result in try await intake.accept(submissions, into: caller.hub, asWhole: true) { try result.get() }
      if let claim { try await idempotency.settle(claim) }
      return batch
    }
  }

  /// Cancels a scheduled send of the caller's hub.
  /// Throws `.notFound`, and `.alreadyEnded` if it is due or was produced.
  package func cancelScheduled(_ send: SendID, by caller: Caller, _ exchange: Exchange) async throws {
    guard let held = try await tracking.schedule.control(send, hub: caller.hub.name, to: .cancelled, at: clock.now())
    else { throw Refusal(.notFound, "there is no such scheduled send") }
    access.security.record(
      .sendSteered, for: exchange, by: caller,
      details: ["send.id": send.description, "state": "cancelled", "own": "\(held.send.sender == caller.user)"])
    guard held.state == .cancelled else {
      throw Refusal(.alreadyEnded, "the send is due and can no longer be cancelled")
    }
  }

  /// The report of a send of the hub; nil if it is unknown, or was accepted a moment ago. Throws `.historyUnavailable`.
  package func report(of send: SendID, hub: HubName) async throws -> SendReport? {
    guard let report = try await tracking.report(of: send, hub: hub), report.hub == hub else { return nil }
    return report
  }
}

extension SendID {
  /// The id of a send of a batch (UUID version 8). It begins with the time of the batch's, so that it sorts like the
  /// ids of other sends.
  package static func member(of batch: SendID, at index: Int) -> SendID {
    let (high, low) = Fingerprint("batch", "\(batch)", "\(index)").words
    return SendID(
      high: batch.high & ~0xFFFF | 0x8000 | (high & 0x0FFF), low: (low & 0x3FFF_FFFF_FFFF_FFFF) | 0x8000_0000_0000_0000)
  }
}
