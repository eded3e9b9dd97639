package import NIOSSL

/// The address of a server and the limits of its clients.
package struct HTTP2ServerConfiguration: Sendable {
  /// The address to listen on.
  package var host: String
  /// The port; 0 lets the system choose one.
  package var port: Int
  /// TLS; ALPN is always set to `h2`. Nil means cleartext with prior knowledge.
  package var tls: TLSConfiguration?
  /// `SETTINGS_MAX_CONCURRENT_STREAMS` of a new connection.
  package var maximumConcurrentStreams = 1000
  /// The most bytes of a request's body; a longer one is reset with ENHANCE_YOUR_CALM.
  package var maximumBodyBytes = 64 * 1024
  /// `SETTINGS_MAX_HEADER_LIST_SIZE`, in bytes.
  package var maximumHeaderListSize = 32 * 1024
  /// The flow-control window of each stream, in bytes.
  package var streamWindow = 1 << 20
  /// The flow-control window of each connection, in bytes; values below the protocol's 65,535 have no effect.
  package var connectionWindow = 1 << 24
  /// Whether PINGs are answered; false plays dead.
  package var answersPings = true
  /// Whether the TLS handshake of a new connection is refused. Called on the connection's event loop; must not block.
  package var refusesHandshake: @Sendable () -> Bool = { false }
  /// The time for TLS, the preface and the client's SETTINGS; then the connection is closed.
  package var handshakeTimeout: Duration = .seconds(10)
  /// The most connections; further ones are closed at once.
  package var maximumConnections = 1000

  package init(host: String = "127.0.0.1", port: Int = 0, tls: TLSConfiguration?) {
    self.host = host
    self.port = port
    self.tls = tls
  }
}
