package import NIOSSL

/// Where a server listens and what it allows its clients.
package struct HTTP2ServerConfiguration: Sendable {
  /// The address to listen on.
  package var host: String
  /// The port; 0 lets the system choose one.
  package var port: Int
  /// TLS; ALPN is always set to `h2`. Nil means cleartext with prior knowledge.
  package var tls: TLSConfiguration?
  /// `SETTINGS_MAX_CONCURRENT_STREAMS` of a new connection.
  package var maximumConcurrentStreams = 1000
  /// Bytes of a request's body at most; a longer one is reset with ENHANCE_YOUR_CALM.
  package var maximumBodyBytes = 64 * 1024
  /// `SETTINGS_MAX_HEADER_LIST_SIZE`, in bytes.
  package var maximumHeaderListSize = 32 * 1024
  /// The flow-control window of each stream, in bytes.
  package var streamWindow = 1 << 20
  /// The flow-control window of each connection, in bytes; at least the protocol's 65,535 has an effect.
  package var connectionWindow = 1 << 24
  /// Whether PINGs are answered; a server that shall look dead does not.
  package var answersPings = true
  /// Asked of every new connection with TLS: whether its handshake is refused. Called on the connection's event loop;
  /// it must not block.
  package var refusesHandshake: @Sendable () -> Bool = { false }
  /// How long a client may take over the beginning of a connection: TLS, where there is any, the preface and its
  /// SETTINGS. Then it is closed.
  package var handshakeTimeout: Duration = .seconds(10)
  /// Connections at the same time at most; more are closed as they come.
  package var maximumConnections = 1000

  /// A configuration with defaults for everything but the address.
  package init(host: String = "127.0.0.1", port: Int = 0, tls: TLSConfiguration?) {
    self.host = host
    self.port = port
    self.tls = tls
  }
}
