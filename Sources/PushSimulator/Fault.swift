package import FanfareCore

/// A misbehaviour ordered by a test or a person: what one service does instead of, or in addition to, what it should.
package struct Fault: Hashable, Sendable {
  /// What is done to a request.
  package enum Action: Hashable, Sendable {
    /// Answered with this status instead of what is right. `reason` is the service's own word (`TooManyRequests`,
    /// `QUOTA_EXCEEDED`, `channelthrottled`), the usual one when nil; `retryAfter` in seconds; `timestamp` for 410 of
    /// APNs, now when nil.
    case answer(status: Int, reason: String? = nil, retryAfter: Int? = nil, timestamp: UnixTime? = nil)
    /// Answered as it should be, but later. Delays of several faults add up.
    case latency(Duration)
    /// Answered as it should be, and the connection told to go away first: GOAWAY, or `Connection: close` in HTTP/1.1.
    case goAway
    /// The connection is dropped; the push was not taken.
    case dropConnection
    /// The push is taken, and the connection dropped before the answer: what a sender cannot know.
    case acceptAndDrop
    /// Never answered; the push was not taken.
    case silence
    /// RST_STREAM with this code (7 is REFUSED_STREAM); the push was not taken. In HTTP/1.1 the connection is dropped.
    case reset(code: UInt32)
    /// Answered as it should be, and the connection's limit of concurrent streams set.
    case streamLimit(Int)
    /// New connections are refused in their TLS handshake, whatever the handle prefix, for none is known yet; those
    /// that are there are not touched. Of APNs and FCM only.
    case refuseHandshake
  }

  /// The service that misbehaves.
  package let service: SimulatedService
  /// What it does.
  package var action: Action
  /// Only for handles that begin with this, in the form in which the store compares handles; for all when nil.
  package let handlePrefix: String?
  /// Only for so many requests; the fault is gone after them. Until it is removed when nil.
  package var count: Int?
  /// Only for this share of requests, 0…1, spread evenly; for all when nil.
  package var share: Double?

  /// A fault as described. `handlePrefix` is as the platform gives handles out: case does not matter to APNs, and of a
  /// WNS channel it may be the URI. No request to a token endpoint has one.
  package init(
    _ service: SimulatedService, _ action: Action, handlePrefix: String? = nil, count: Int? = nil, share: Double? = nil
  ) {
    self.service = service
    self.action = action
    self.handlePrefix = handlePrefix.map { prefix in
      service.platform.map { DeviceStore.normalized(prefix, platform: $0) } ?? prefix
    }
    self.count = count
    self.share = share
  }
}
