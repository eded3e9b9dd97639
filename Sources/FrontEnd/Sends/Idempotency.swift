import FanfareCore
import HTTPTypes

/// Makes requests with an `Idempotency-Key` repeatable.
/// The first request claims the key, repetitions find the claim.
///
/// Guarantees for `lifetime` after the first request, on all front ends that share the store:
/// - The same request of the same caller gets the same answer with the same ids, even while the first is being handled.
/// - Another request with the key is refused.
/// - A request that follows a 2xx answer enqueues nothing.
///
/// If the first request was not answered 2xx (an error, a crash, or it is still being handled), a repetition enqueues
/// again under the same ids, and counts against the quota again. If Kafka has accepted the first one after all, the
/// worker drops the second while it remembers the first, which is while the first is among its last settled sends and
/// the worker keeps the partition. Otherwise a device gets two pushes with the same id and the same secure payload. The
/// ledger counts them once, in PostgreSQL twice if midnight (UTC) lies between them. The same holds for accepted lines
/// of a batch of which others failed because of Kafka. For lack of quota, a batch with a key is refused as a whole.
struct Idempotency: Sendable {
  /// How long a key is remembered.
  static let lifetime: Duration = .seconds(24 * 60 * 60)

  let store: any SendClaimStore

  /// Accepts a single send, unless an earlier request with the key was settled.
  /// Returns the id of the send.
  ///
  /// Without a key the send gets `id`, otherwise the id that belongs to the key. `request` is digested only if there is
  /// a key. Throws as `claim` and `accept` do.
  func run(
    _ key: IdempotencyKey?, for request: @autoclosure () -> Fingerprint, by caller: Caller, at now: UnixTime,
    id: SendID, accept: (SendID) async throws -> Void
  ) async throws -> SendID {
    guard let key else {
      try await accept(id)
      return id
    }
    let claim = try await claim(key, for: request(), by: caller, at: now)
    if !claim.isSettled {
      try await accept(claim.sendID())
      try await settle(claim)
    }
    return claim.sendID()
  }

  /// Claims the key for a request that was validated.
  /// Throws `.keyReused` if it belongs to another request, and the errors of the store.
  func claim(_ key: IdempotencyKey, for request: Fingerprint, by caller: Caller, at now: UnixTime) async throws
    -> SendClaim
  {
    let identity = Fingerprint(caller.hub.name.rawValue, caller.user, key.text)
    let digest = request.digest
    let claim = try await store.claim(
      SendClaim(hub: caller.hub.name, key: identity.digest, request: digest, at: now), lifetime: Self.lifetime)
    guard claim.request == digest else {
      throw Refusal(.keyReused, "Idempotency-Key was used for another request in the last 24 hours")
    }
    return claim
  }

  /// Records that the whole request is durable.
  /// Call it before answering: an answered request must not be sent again.
  func settle(_ claim: SendClaim) async throws {
    try await store.settle(claim)
  }
}

/// The value of an `Idempotency-Key` field: 1 to 255 printable ASCII characters, usually a UUID.
struct IdempotencyKey: Hashable, Sendable {
  static let maximumLength = 255

  let text: String

  /// Returns nil if the request has no key.
  /// Throws `.malformedRequest` if the key is invalid or repeated: a caller that gives a key relies on it.
  init?(of headers: HTTPFields) throws(Refusal) {
    let values = headers[values: .idempotencyKey]
    guard let value = values.first else { return nil }
    guard values.count == 1 else { throw Refusal(.malformedRequest, "Idempotency-Key must be given once") }
    guard (1...Self.maximumLength).contains(value.utf8.count), value.utf8.allSatisfy({ (0x20...0x7E).contains($0) })
    else {
      throw Refusal(
        .malformedRequest, "Idempotency-Key must be 1 to \(Self.maximumLength) printable ASCII characters")
    }
    text = value
  }
}
