package import NIOCore
package import NIOSSL

/// The peer and the behaviour of a pool.
package struct HTTP2PoolConfiguration: Sendable {
  /// The host: a name, which is looked up for every connection, or an address.
  package var host: String
  /// The TCP port.
  package var port: Int
  /// The name for SNI and certificate verification; nil means `host`.
  package var serverName: String?
  /// TLS 1.2 or later, with ALPN set to `h2`. Nil means cleartext with prior knowledge, for tests.
  package var tls: TLSConfiguration?

  /// Connections kept open even when idle, 0…`maximumConnections`.
  package var minimumConnections = 1
  /// The most connections, those being opened included. Replacements of old connections are not counted while the old
  /// ones drain.
  package var maximumConnections = 4
  /// How long the oldest request may wait while all connections are at their stream limit; then another connection is
  /// opened.
  package var growthDelay: Duration = .milliseconds(250)
  /// How long a connection above the minimum may be idle before it is closed.
  package var idleShrinkTime: Duration = .seconds(60)
  /// The age at which a connection is replaced; nil means never. (FCM ends connections at one hour.)
  package var maximumConnectionAge: Duration?

  /// Looks up the addresses of the host; tests replace it. Called on a thread of the pool's own, which it may block.
  /// The addresses are tried in the order of RFC 8305.
  package var lookUp: @Sendable (String, Int) throws -> [SocketAddress] = SocketAddress.addresses
  /// Time for name lookup and TCP.
  package var connectTimeout: Duration = .seconds(5)
  /// Time from TCP to the peer's SETTINGS.
  package var handshakeTimeout: Duration = .seconds(10)
  /// How long sent data may stay unacknowledged, or the peer's window closed, before the connection counts as dead
  /// (`TCP_USER_TIMEOUT`). Firewalls drop idle connections without a notice.
  package var acknowledgementTimeout: Duration = .seconds(15)
  /// The pause after the first failed connection; doubled after every further one.
  package var reconnectBackoff: Duration = .seconds(1)
  /// The longest pause after failed connections, and so the longest time in which a recovered peer goes unnoticed. An
  /// unused connection that was open for longer than this has not failed when the peer closes it.
  package var maximumReconnectBackoff: Duration = .seconds(15)

  /// After this time without a received byte, a connection is checked with a PING; nil means never, for peers that
  /// count idle PINGs as abuse.
  package var idlePingInterval: Duration?
  /// The time for the answer to a PING, after which the connection counts as dead.
  package var pingTimeout: Duration = .seconds(10)

  /// The most streams per connection, even if the peer allows more.
  package var maximumStreamsPerConnection = 1000
  /// The most requests that wait in the pool; further ones fail as `queueFull`.
  package var maximumQueuedRequests = 10_000
  /// The most resends of one request after REFUSED_STREAM or GOAWAY.
  package var maximumSafeResends = 3
  /// The most bytes of a response's body.
  package var maximumResponseBodyBytes = 64 * 1024
  /// The names (lower-case) of the response fields to keep.
  package var keptResponseHeaders: [String] = []
  /// How long requests in flight may continue when the task that runs the pool is cancelled.
  package var cancellationTimeout: Duration = .seconds(10)
  /// The interval at which deadlines, ages and idle times are checked: the precision of all of them.
  package var tickInterval: Duration = .milliseconds(50)

  package init(host: String, port: Int, tls: TLSConfiguration?) {
    self.host = host
    self.port = port
    self.tls = tls
  }
}

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
