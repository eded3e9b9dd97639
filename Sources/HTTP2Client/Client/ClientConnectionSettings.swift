import Dispatch
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
  /// `handshakeTimeout` as NIO counts it.
  let handshakeTimeout: TimeAmount
  /// `idlePingInterval` as NIO counts it.
  let idlePingInterval: TimeAmount?
  /// `pingTimeout` as NIO counts it.
  let pingTimeout: TimeAmount
  /// `acknowledgementTimeout` in milliseconds, as `TCP_USER_TIMEOUT` counts it.
  let acknowledgementTimeout: Int
  /// `tickInterval` as NIO counts it.
  let tickInterval: TimeAmount
  /// Where the host is looked up, by one connection after another.
  let lookUpQueue = DispatchQueue(label: "http2.look-up")

  /// Throws if a setting is out of range or the TLS configuration cannot be used.
  init(_ configuration: HTTP2PoolConfiguration) throws {
    try Self.check(configuration)
    self.configuration = configuration
    tls = try configuration.tls.map { tls in
      var tls = tls
      tls.applicationProtocols = ["h2"]
      if tls.minimumTLSVersion == .tlsv1 || tls.minimumTLSVersion == .tlsv11 { tls.minimumTLSVersion = .tlsv12 }
      tls.shutdownTimeout = min(tls.shutdownTimeout, .seconds(1))
      return try NIOSSLContext(configuration: tls)
    }
    let name = configuration.serverName ?? configuration.host
    // Neither SNI nor the check of a DNS name works for an address; certificates for addresses are checked against the
    // peer's own. What is thrown is the answer "not an address".
    tlsServerName = (try? SocketAddress(ipAddress: name, port: 0)) == nil ? name : nil
    keptHeaders = configuration.keptResponseHeaders.map { Array($0.utf8) }
    handshakeTimeout = TimeAmount(configuration.handshakeTimeout)
    idlePingInterval = configuration.idlePingInterval.map { TimeAmount($0) }
    pingTimeout = TimeAmount(configuration.pingTimeout)
    acknowledgementTimeout = Int(configuration.acknowledgementTimeout / .milliseconds(1))
    tickInterval = TimeAmount(configuration.tickInterval)
  }

  private static func check(_ configuration: HTTP2PoolConfiguration) throws {
    let rules = [
      (!configuration.host.isEmpty, "host is empty"),
      ((1...65_535).contains(configuration.port), "port must be 1…65535"),
      (configuration.maximumConnections >= 1, "maximumConnections must be at least 1"),
      (
        (0...max(0, configuration.maximumConnections)).contains(configuration.minimumConnections),
        "minimumConnections must be 0…maximumConnections"
      ),
      (configuration.maximumStreamsPerConnection >= 1, "maximumStreamsPerConnection must be at least 1"),
      (configuration.maximumQueuedRequests >= 1, "maximumQueuedRequests must be at least 1"),
      (configuration.maximumSafeResends >= 0, "maximumSafeResends must not be negative"),
      (
        configuration.acknowledgementTimeout >= .milliseconds(1),
        "acknowledgementTimeout must be at least a millisecond"
      ),
      (configuration.tickInterval >= .milliseconds(1), "tickInterval must be at least a millisecond"),
    ]
    for (isKept, rule) in rules where !isKept { throw HTTP2ConnectionError(.invalidConfiguration, rule) }
  }
}
