/// Told what happens to a pool's connections, for metrics and operations.
///
/// Called on the connections' event loops, events of one connection in order; an implementation must be quick and must
/// not block.
package protocol HTTP2PoolObserver: Sendable {
  /// Something happened.
  func pool(_ host: String, didObserve event: HTTP2PoolEvent)
}

/// What happened to a connection of a pool. `connection` numbers the pool's connections from 1 and is never used again.
package enum HTTP2PoolEvent: Sendable, Hashable {
  /// The connection is usable: TLS is up and the peer's SETTINGS have arrived.
  case opened(connection: Int, streamLimit: Int)
  /// The connection never became usable; `nextAttemptIn` is the pause before the next one.
  case failed(connection: Int, error: HTTP2ConnectionError, nextAttemptIn: Duration)
  /// The peer changed how many streams it allows at a time.
  case streamLimitChanged(connection: Int, streamLimit: Int)
  /// The peer asked to go away; `debugData` is what it said about it (at most 1 KiB).
  case goAway(connection: Int, code: HTTP2ErrorCode, lastStreamID: Int32, debugData: [UInt8])
  /// A usable connection ended; `error` is nil if we closed it in peace.
  case closed(connection: Int, error: HTTP2ConnectionError?)
  /// `count` requests are sent once more, because the peer guaranteed not to have processed them.
  case resending(connection: Int, count: Int)
}
