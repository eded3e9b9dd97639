package import FanfareCore
package import HTTP2Client

/// Builds the requests of one batch, which share all that they can.
package struct FCMRequestWriter {
  private let shared: HTTP2Headers
  private let now: UnixTime
  private let timeout: Duration

  /// Requests that all carry these fields, `:path` among them, are made at that moment and may take so long.
  package init(shared: HTTP2Headers, now: UnixTime, timeout: Duration) {
    self.shared = shared
    self.now = now
    self.timeout = timeout
  }

  /// The request for a push that has not expired.
  package func request(for push: Push, ticket: UInt64) -> HTTP2Request {
    let remaining = push.expiresAt - now
    let body = FCMBody.complete(
      push.rendering, id: push.id, token: push.handle, expiresAt: push.expiresAt,
      timeToLive: remaining.components.seconds)
    return HTTP2Request(
      ticket: ticket, shared: shared, headers: HTTP2Headers(), body: body, timeout: timeout, patience: remaining,
      isBulk: push.isBulk)
  }
}
