import Dispatch
import NIOCore
import NIOPosix
import NIOSSL

/// The settings that all connections of a pool share, in the form in which they need them.
struct ClientConnectionSettings: Sendable {
  let configuration: HTTP2PoolConfiguration
  /// Nil for cleartext.
  let tls: NIOSSLContext?
  /// The name for SNI and verification; nil if the peer is given by its address.
  let tlsServerName: String?
  let keptHeaders: [[UInt8]]
  let handshakeTimeout: TimeAmount
  let idlePingInterval: TimeAmount?
  let pingTimeout: TimeAmount
  /// In milliseconds, for `TCP_USER_TIMEOUT`.
  let acknowledgementTimeout: Int
  let tickInterval: TimeAmount
  /// Runs the name lookups, one at a time.
  let lookUpQueue = DispatchQueue(label: "http2.look-up")

  /// Throws if a setting is out of range or TLS cannot be set up.
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
    // SNI and the verification of a DNS name do not work for an address; a certificate for an address is verified
    // against the peer's own. An error means "not an address".
    tlsServerName = (try? SocketAddress(ipAddress: name, port: 0)) == nil ? name : nil
    keptHeaders = configuration.keptResponseHeaders.map { Array($0.utf8) }
    handshakeTimeout = TimeAmount(configuration.handshakeTimeout)
    idlePingInterval = configuration.idlePingInterval.map { TimeAmount($0) }
    pingTimeout = TimeAmount(configuration.pingTimeout)
    // in range: a setting
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

/// One lookup of a host's addresses, started at once on a queue of its pool.
///
/// NIO's own lookups wait for one another on each event loop, so that one name with unresponsive servers would keep all
/// pools of that loop from connecting.
struct HostLookup: Resolver, Sendable {
  /// Looks up the addresses of a host. Blocks.
  typealias Function = @Sendable (String, Int) throws -> [SocketAddress]

  private let addresses: EventLoopFuture<[SocketAddress]>

  /// Skips the lookup if `deadline` has passed when the queue reaches it.
  init(
    of host: String, port: Int, until deadline: NIODeadline, on queue: DispatchQueue, eventLoop: any EventLoop,
    _ function: @escaping Function
  ) {
    let promise = eventLoop.makePromise(of: [SocketAddress].self)
    addresses = promise.futureResult
    queue.async {
      promise.completeWith(
        Result {
          guard .now() < deadline else {
            throw HTTP2ConnectionError(.connectFailed, "the name was not looked up in time")
          }
          return try function(host, port)
        })
    }
  }

  func initiateAQuery(host: String, port: Int) -> EventLoopFuture<[SocketAddress]> {
    addresses.map { $0.filter { $0.protocol == .inet } }
  }

  func initiateAAAAQuery(host: String, port: Int) -> EventLoopFuture<[SocketAddress]> {
    addresses.map { $0.filter { $0.protocol == .inet6 } }
  }

  /// A lookup that has started cannot be stopped.
  func cancelQueries() {}
}
