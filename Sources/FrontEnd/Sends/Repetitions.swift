import FanfareCore

/// What makes a request with an `Idempotency-Key` repeatable: the first one claims the key, later ones find the claim.
///
/// Guaranteed, by as many front ends as share the store, for `lifetime` after the key was first given: the same
/// caller's same request has the same answer with the same ids, whichever front end gets it, also while the first one
/// is still being handled; another request is refused; a request that comes after an answer of 2xx enqueues nothing.
///
/// Where the first request was not answered 2xx (an error, a crash on the way, or it is still being handled) a
/// repetition enqueues again, under the same ids, and takes places of the quota of its own. Should the first have
/// reached Kafka all the same, the worker drops the second as long as it remembers the first (its last settled sends,
/// and only while it keeps the partition); otherwise a device gets two pushes, of one id and, where a secure payload is
/// announced, of one payload. The ledger counts one, but in PostgreSQL two where midnight (UTC) lies between them. The
/// same holds for the lines of a batch that were accepted while others failed for want of Kafka; for want of quota a
/// batch under a key is refused as a whole. Front ends that share no store know nothing of each other's keys.
struct Repetitions: Sendable {
  /// How long a key is remembered.
  static let lifetime: Duration = .seconds(24 * 60 * 60)

  let store: any SendClaimStore

  /// Has one send accepted, once: as it is where there is no key, else under the id of the claim, unless that was done
  /// before. Returns the id it is accepted under. Throws as `claim` and `accept` do. The digest of the request is only
  /// made where there is a key.
  func run(
    _ key: IdempotencyKey?, for request: @autoclosure () -> Fingerprint, of submission: Submission, by caller: Caller,
    accept: (Submission) async throws -> Void
  ) async throws -> SendID {
    guard let key else {
      try await accept(submission)
      return submission.send.id
    }
    let claim = try await claim(key, for: request(), by: caller, at: submission.send.acceptedAt)
    if !claim.isSettled {
      try await accept(submission.identified(as: claim.sendID()))
      try await settle(claim)
    }
    return claim.sendID()
  }

  /// Claims the key for a request that is known to be sound. Throws `.keyReused` when it belongs to another request,
  /// and what the store throws.
  func claim(_ key: IdempotencyKey, for request: Fingerprint, by caller: Caller, at now: UnixTime) async throws
    -> SendClaim
  {
    let identity = Fingerprint(caller.hub.name.rawValue, caller.user, key.text)
    let digest = request.digest
    let claim = try await store.claim(
      SendClaim(hub: caller.hub.name, key: identity.digest, request: digest, at: now), lifetime: Self.lifetime)
    guard claim.request == digest else {
      throw Refusal(.keyReused, "Idempotency-Key was given with another request in the last 24 hours")
    }
    return claim
  }

  /// Remembers that all that was asked for is durable. To be called before the answer: a caller who has it is never
  /// sent for again.
  func settle(_ claim: SendClaim) async throws {
    try await store.settle(claim)
  }
}
