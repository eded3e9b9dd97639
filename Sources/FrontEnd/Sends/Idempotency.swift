import Crypto
import FanfareCore
import HTTPServer

/// Makes requests with an `Idempotency-Key` repeatable.
/// The first request claims the key, repetitions find the claim.
///
/// Guarantees for `lifetime` after the first request, on all front ends that share the store:
/// - The same request of the same caller gets the same answer with the same ids, even while the first is being handled.
/// - Another request with the key is refused.
/// - A request that follows a 2xx answer enqueues nothing.
///
/// If the first request was not answered 2xx (an error, a crash, or it is still being handled), a repetition enqueues
/// again under the same ids, and counts against the quotas again. Kafka may have accepted the first one nevertheless:
/// - Usually the worker then drops the second record. It does so while it keeps the partition and still remembers the
///   first send (`ItemTable` remembers the last settled ones).
/// - Otherwise a device gets two pushes with the same id and the same secure payload.
/// - The ledger counts both as one send. On PostgreSQL it counts two if midnight (UTC) lies between them, because its
///   tables are divided by day.
///
/// The lines of a batch are treated alike if Kafka accepts only some of them. A batch with a key that exceeds a quota is
/// refused as a whole.
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
  /// Throws `.keyReused` if it belongs to another request, `.overQuota`, and the errors of the store.
  func claim(_ key: IdempotencyKey, for request: Fingerprint, by caller: Caller, at now: UnixTime) async throws
    -> SendClaim
  {
    let identity = Fingerprint(caller.hub.name.rawValue, caller.user, key.text)
    let digest = request.digest
    try await caller.hub.quotas.charge(HubQuotas.rowBytes, to: .storedBytes, of: caller.user, at: now)
    let claim = try await store.claim(
      SendClaim(hub: caller.hub.name, key: identity.digest, request: digest, at: now), lifetime: Self.lifetime)
    guard claim.request == digest else {
      throw Refusal(.keyReused, "Idempotency-Key was used for another request in the last 24 hours")
    }
    return claim
  }

  /// Records that the whole request is durable.
  /// Call it before answering: an answered request must not be sent again.
  func settle(_ claim: SendClaim) async throws { try await store.settle(claim) }
}

/// The value of an `Idempotency-Key` field: 1 to 255 printable ASCII characters, usually a UUID.
struct IdempotencyKey: Hashable, Sendable {
  static let maximumLength = 255

  let text: String

  /// Returns nil if the request has no key.
  /// Throws `.malformedRequest` if the key is invalid or repeated: a caller that gives a key relies on it.
  init?(of exchange: borrowing Exchange) throws(Refusal) {
    guard exchange.headers.hasIdempotencyKey else { return nil }
    let values = exchange.headers[values: .idempotencyKey]
    guard let value = values.first else { return nil }
    guard values.count == 1 else { throw Refusal(.malformedRequest, "Idempotency-Key must be given once") }
    guard (1...Self.maximumLength).contains(value.utf8.count), value.utf8.allSatisfy({ (0x20...0x7E).contains($0) })
    else {
      throw Refusal(.malformedRequest, "Idempotency-Key must be 1 to \(Self.maximumLength) printable ASCII characters")
    }
    text = value
  }
}

/// A SHA-256 digest of several pieces.
/// Each is preceded by its length, so that different lists have different digests.
struct Fingerprint {
  private var hash = SHA256()

  init(_ pieces: String...) { self.init(pieces) }

  init(_ pieces: [String]) {
    for piece in pieces { add(piece.utf8) }
  }

  /// Digests the body of a request to a route.
  init(_ route: String, body: ArraySlice<UInt8>) {
    self.init(route)
    add(body)
  }

  mutating func add(_ piece: some Collection<UInt8>) {
    hash.update(data: (0..<8).map { UInt8(truncatingIfNeeded: piece.count >> ($0 * 8)) })
    hash.update(data: Array(piece))
  }

  /// 32 bytes.
  var digest: [UInt8] { Array(hash.finalize()) }

  /// The first sixteen bytes of the digest as big-endian words.
  var words: (high: UInt64, low: UInt64) {
    digest.prefix(16).enumerated().reduce(into: (0, 0)) { words, byte in
      if byte.offset < 8 {
        words.high = words.high << 8 | UInt64(byte.element)
      } else {
        words.low = words.low << 8 | UInt64(byte.element)
      }
    }
  }
}

extension SendClaim {
  /// Returns the id of the send in a line of the claimed request.
  /// It is the same on every call and every front end.
  ///
  /// A UUID of version 8 that begins with the time of the claim, so that it sorts like the ids of other sends.
  func sendID(line: Int = 0) -> SendID {
    var fingerprint = Fingerprint("\(at.milliseconds)", "\(line)")
    fingerprint.add(key)
    let (high, low) = fingerprint.words
    let milliseconds = UInt64(clamping: at.milliseconds) & 0xFFFF_FFFF_FFFF
    return SendID(
      high: milliseconds << 16 | 0x8000 | (high & 0x0FFF), low: (low & 0x3FFF_FFFF_FFFF_FFFF) | 0x8000_0000_0000_0000)
  }
}

extension SecurePayloadID {
  /// Derives the id of the payload that a send announces (UUID version 8).
  /// A repeated send announces the same id.
  init(announcedBy send: SendID) {
    let (high, low) = Fingerprint("secure payload", "\(send)").words
    self.init(high: (high & 0xFFFF_FFFF_FFFF_0FFF) | 0x8000, low: (low & 0x3FFF_FFFF_FFFF_FFFF) | 0x8000_0000_0000_0000)
  }
}
