/// Observes the connections of a pool, for metrics and operations.
///
/// Called on the connections' event loops, with the events of one connection in order. An implementation must be quick
/// and must not block.
package protocol HTTP2PoolObserver: Sendable {
  func pool(_ host: String, didObserve event: HTTP2PoolEvent)
}

/// An event of one connection. `connection` is its number in the pool, from 1 and never reused.
package enum HTTP2PoolEvent: Sendable, Hashable {
  /// The connection is usable: TLS is up and the peer's SETTINGS have arrived.
  case opened(connection: Int, streamLimit: Int)
  /// The connection never became usable; `nextAttemptIn` is the pause before the next one.
  case failed(connection: Int, error: HTTP2ConnectionError, nextAttemptIn: Duration)
  /// The peer changed its limit of concurrent streams.
  case streamLimitChanged(connection: Int, streamLimit: Int)
  /// The peer sent GOAWAY; `debugData` is cut to 1 KiB.
  case goAway(connection: Int, code: HTTP2ErrorCode, lastStreamID: Int32, debugData: [UInt8])
  /// A usable connection ended; `error` is nil if this side closed it as planned.
  case closed(connection: Int, error: HTTP2ConnectionError?)
  /// `count` requests are sent again, because the peer guarantees that it has not processed them.
  case resending(connection: Int, count: Int)
}

/// The numbers of a pool at one moment.
package struct HTTP2PoolStatistics: Sendable, Hashable {
  /// Usable connections, without those that are draining.
  package var connections = 0
  /// Connections being set up.
  package var connecting = 0
  /// Connections that take no new requests and end with their last stream.
  package var draining = 0
  /// Requests in flight on all connections, as of each connection's last turn.
  package var openStreams = 0
  /// Requests waiting for a stream.
  package var queued = 0
  /// The sum of the stream limits of all usable connections.
  package var streamLimit = 0

  package init() {}
}
