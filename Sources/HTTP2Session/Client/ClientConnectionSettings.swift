import NIOCore
import NIOSSL

/// What all connections of a pool have in common, in the form they need it.
struct ClientConnectionSettings: Sendable {
  /// The pool's configuration.
  let configuration: HTTP2PoolConfiguration
  /// TLS, nil for cleartext.
  let tls: NIOSSLContext?
  /// The name for SNI and verification, nil where the peer is called by its address.
  let tlsServerName: String?
  /// The names of the response fields to keep, as bytes.
  let keptHeaders: [[UInt8]]
  /// The timings, as NIO counts them.
  let handshakeTimeout: TimeAmount
  let idlePingInterval: TimeAmount?
  let pingTimeout: TimeAmount
  let tickInterval: TimeAmount

  /// Throws if the TLS configuration cannot be used.
  init(_ configuration: HTTP2PoolConfiguration) throws {
    self.configuration = configuration
    tls = try configuration.tls.map { tls in
      var tls = tls
      tls.applicationProtocols = ["h2"]
      if tls.minimumTLSVersion == .tlsv1 || tls.minimumTLSVersion == .tlsv11 { tls.minimumTLSVersion = .tlsv12 }
      tls.shutdownTimeout = min(tls.shutdownTimeout, .seconds(1))
      return try NIOSSLContext(configuration: tls)
    }
    let name = configuration.serverName ?? configuration.host
    // Neither SNI nor the check of a DNS name works for an address; certificates for addresses are checked against the peer's own.
    // What is thrown is the answer "not an address".
    tlsServerName = (try? SocketAddress(ipAddress: name, port: 0)) == nil ? name : nil
    keptHeaders = configuration.keptResponseHeaders.map { Array($0.utf8) }
    handshakeTimeout = TimeAmount(configuration.handshakeTimeout)
    idlePingInterval = configuration.idlePingInterval.map { TimeAmount($0) }
    pingTimeout = TimeAmount(configuration.pingTimeout)
    tickInterval = TimeAmount(configuration.tickInterval)
  }
}
