package import FanfareCore

/// A fault ordered by a test or a person: what one service does instead of, or besides, its usual answer.
package struct Fault: Hashable, Sendable {
  /// What the fault does to a request.
  package enum Action: Hashable, Sendable {
    /// Answers with this status. `reason` is the service's own word (`TooManyRequests`, `QUOTA_EXCEEDED`,
    /// `channelthrottled`), by default the usual one; `retryAfter` is in seconds; `timestamp` is for 410 of APNs, by
    /// default now.
    case answer(status: Int, reason: String? = nil, retryAfter: Int? = nil, timestamp: UnixTime? = nil)
    /// Delays the usual answer. Delays of several faults add up.
    case latency(Duration)
    /// Answers as usual, and first sends GOAWAY, or `Connection: close` in HTTP/1.1.
    case goAway
    /// Drops the connection without accepting the push.
    case dropConnection
    /// Accepts the push and drops the connection before the answer, so that the outcome is unknown to the sender.
    case acceptAndDrop
    /// Never answers, and does not accept the push.
    case silence
    /// Sends RST_STREAM with this code (7 is REFUSED_STREAM) without accepting the push. In HTTP/1.1 the connection is
    /// dropped.
    case reset(code: UInt32)
    /// Answers as usual, and sets the connection's limit of concurrent streams.
    case streamLimit(Int)
    /// Refuses the TLS handshake of new connections, for APNs and FCM only. It cannot have a handle prefix, and open
    /// connections are not affected.
    case refuseHandshake
  }

  package let service: SimulatedService
  package var action: Action
  /// Applies only to handles with this prefix, in the form in which the store compares handles; nil for all.
  package let handlePrefix: String?
  /// Applies to this many requests and then ends; nil until it is removed.
  package var count: Int?
  /// Applies to this share of requests, 0…1, spread evenly; nil for all.
  package var share: Double?

  /// `handlePrefix` may be in the platform's own form: any case for APNs, a URI for a WNS channel. Requests to token
  /// endpoints have no handle.
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
