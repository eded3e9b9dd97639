package import NIOCore
package import NIOSSL

/// Where a pool connects to and how it behaves.
package struct HTTP2PoolConfiguration: Sendable {
  /// The host to connect to: a name (looked up anew for every connection) or an address.
  package var host: String
  /// The TCP port.
  package var port: Int
  /// The name for SNI and certificate verification; nil means `host`.
  package var serverName: String?
  /// TLS. ALPN is always set to `h2` and TLS 1.2 is the least accepted. Nil means cleartext with prior knowledge, for
  /// tests.
  package var tls: TLSConfiguration?

  /// Connections kept open even when idle, 0…`maximumConnections`.
  package var minimumConnections = 1
  /// Connections open or being opened at most; replacements of ageing connections come on top while the old ones drain.
  package var maximumConnections = 4
  /// How long the oldest request may wait while all connections are at their stream limit before another connection is
  /// opened.
  package var growthDelay: Duration = .milliseconds(250)
  /// How long a connection beyond the minimum may be without any request before it is closed.
  package var idleShrinkTime: Duration = .seconds(60)
  /// The age at which a connection is replaced; nil means never. (FCM ends connections at one hour.)
  package var maximumConnectionAge: Duration?

  /// Finds the addresses of the host at the port; another one than the system's for tests. Called on a thread of the
  /// pool's own, which it may block; the addresses are tried as RFC 8305 says.
  package var lookUp: @Sendable (String, Int) throws -> [SocketAddress] = SocketAddress.addresses
  /// Time for name lookup and TCP.
  package var connectTimeout: Duration = .seconds(5)
  /// Time from TCP to the peer's SETTINGS.
  package var handshakeTimeout: Duration = .seconds(10)
  /// How long the peer's system may leave what it was sent unacknowledged, or take nothing more, before the connection
  /// is dead. Firewalls forget connections on which nothing happens, and say so to nobody.
  package var acknowledgementTimeout: Duration = .seconds(15)
  /// The pause after the first connection that failed, or was of no use; doubled by every further one.
  package var reconnectBackoff: Duration = .seconds(1)
  /// The longest pause after failed connections: for so long nobody finds out that the peer works again. A connection
  /// that was open for so long without being needed has not failed when the peer ends it.
  package var maximumReconnectBackoff: Duration = .seconds(15)

  /// A connection from which nothing has come for so long is asked for a sign of life with a PING; nil means never, for
  /// peers that count idle PINGs as abuse.
  package var idlePingInterval: Duration?
  /// The time for the answer to a PING; without it the connection is dead.
  package var pingTimeout: Duration = .seconds(10)

  /// Streams per connection at most, even if the peer allows more.
  package var maximumStreamsPerConnection = 1000
  /// Requests waiting in the pool at most; more are refused with `queueFull`.
  package var maximumQueuedRequests = 10_000
  /// How often one request is resent after REFUSED_STREAM or GOAWAY.
  package var maximumSafeResends = 3
  /// Bytes of a response's body at most.
  package var maximumResponseBodyBytes = 64 * 1024
  /// The names (lower-case) of the response fields to keep.
  package var keptResponseHeaders: [String] = []
  /// How long in-flight requests may go on when the task that runs the pool is cancelled.
  package var cancellationTimeout: Duration = .seconds(10)
  /// How often deadlines, ages and idle times are looked at: the precision of all of them.
  package var tickInterval: Duration = .milliseconds(50)

  /// A configuration with defaults for everything but the peer.
  package init(host: String, port: Int, tls: TLSConfiguration?) {
    self.host = host
    self.port = port
    self.tls = tls
  }
}
