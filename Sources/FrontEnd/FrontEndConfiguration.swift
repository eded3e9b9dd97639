package import FanfareCore
package import HTTPServer

/// The listening address, limits and timeouts of the front end.
package struct FrontEndConfiguration: Sendable {
  package var host = "127.0.0.1"
  /// 0: the kernel chooses a free port.
  package var port = 8080
  package var topics = Topics()

  /// The most bytes of a body, and of a line of a batch.
  package var maximumBodySize = 64 * 1024
  /// The most bytes of a batch of sends.
  package var maximumBatchSize = 1024 * 1024
  /// The most bytes of one header field, or of the request line.
  package var maximumHeaderFieldSize = 16 * 1024
  /// The most bytes of all header fields of a request and its target.
  package var maximumHeaderSize = 32 * 1024
  /// The most header fields of a request.
  package var maximumHeaderCount = 100
  /// The most open connections. When there are more, those that are idle longest are closed.
  package var maximumConnections = 8192
  /// The most open connections of one address (of IPv6: of its first 64 bits). Trusted proxies are exempt.
  package var maximumConnectionsPerAddress = 1024
  /// The most bytes of all bodies that are read or whose requests are being answered.
  package var maximumBodyBytesInMemory = 64 * 1024 * 1024
  /// The most bytes of all answers that clients have not taken yet.
  package var maximumAnswerBytesInMemory = 64 * 1024 * 1024
  /// The proxies from which alone `X-Forwarded-For` is believed.
  package var proxies = TrustedProxies()
  /// The origins of web pages whose requests are accepted with ambient credentials.
  package var allowedOrigins: Set<String> = []
  /// TLS of the listener; nil for none.
  package var tls: ServerTLS?
  /// The time for the first request of a connection to begin, with the TLS handshake.
  package var firstRequestTimeout: Duration = .seconds(10)
  /// The time for the body of a request to arrive.
  package var bodyTimeout: Duration = .seconds(30)
  /// An idle connection is closed after this time; also the time for the header section of a later request.
  package var idleTimeout: Duration = .seconds(75)
  /// The time after which a client that reads too little of its answers loses the connection or the stream; see
  /// `ReadingRate`. At most twice as long.
  package var writeTimeout: Duration = .seconds(75)
  /// The time for clients to read their answers during shutdown.
  package var drainTimeout: Duration = .seconds(20)
  /// The budgets of failed logins.
  package var logins = LoginLimits()
  /// The key of browsers' sessions.
  package var sessions = SessionKey()
  /// The time after which an unread secure payload expires.
  package var securePayloadLifetime: Duration = .seconds(24 * 3600)

  package init() {}

  /// Whether callers on other machines must come through a proxy. Otherwise their credentials would travel in the
  /// clear.
  var requiresProxy: Bool { tls == nil && !proxies.isEmpty && !DemoAuthenticator.isLoopback(host) }

  /// Throws `.configuration`, naming the key, if a value is out of range.
  func validate() throws(FrontEndError) {
    func check(_ condition: Bool, _ key: String, _ rule: String) throws(FrontEndError) {
      guard condition else { throw FrontEndError(.configuration, "\(key) must be \(rule)") }
    }
    try check((0...65535).contains(port), "port", "0 to 65535")
    try check((1024...16_777_216).contains(maximumBodySize), "maximumBodySize", "1 KiB to 16 MiB")
    try check((1024...16_777_216).contains(maximumBatchSize), "maximumBatchSize", "1 KiB to 16 MiB")
    try check(maximumHeaderFieldSize >= 1024, "maximumHeaderFieldSize", "at least 1 KiB")
    try check(maximumHeaderSize >= maximumHeaderFieldSize, "maximumHeaderSize", "at least maximumHeaderFieldSize")
    try check(maximumHeaderCount >= 16, "maximumHeaderCount", "at least 16")
    try check(maximumConnections >= 1, "maximumConnections", "at least 1")
    try check(maximumConnectionsPerAddress >= 1, "maximumConnectionsPerAddress", "at least 1")
    try check(
      maximumBodyBytesInMemory >= max(maximumBodySize, maximumBatchSize), "maximumBodyBytesInMemory",
      "at least the largest body")
    try check(maximumAnswerBytesInMemory >= 1_048_576, "maximumAnswerBytesInMemory", "at least 1 MiB")
    try check(firstRequestTimeout > .zero, "firstRequestTimeout", "positive")
    try check(bodyTimeout > .zero, "bodyTimeout", "positive")
    try check(idleTimeout > .zero, "idleTimeout", "positive")
    try check(writeTimeout > .zero, "writeTimeout", "positive")
    try check(drainTimeout > .zero, "drainTimeout", "positive")
    try check(
      logins.perAddress >= 1 && logins.perUser >= 1 && logins.window > .zero && logins.capacity >= 2, "logins",
      "budgets of at least 1 within a positive time")
    try check(
      securePayloadLifetime >= .seconds(1) && securePayloadLifetime <= .seconds(SendRequest.maximumTimeToLive),
      "securePayloadLifetime", "1 second to \(SendRequest.maximumTimeToLive) seconds")
  }
}

extension ServerTLS {
  /// When the certificate expires.
  package var expiry: UnixTime { UnixTime(milliseconds: expirySeconds * 1000) }
}

/// A hub that the front end serves.
/// Its routes are under `/hubs/<name>/api`, those of the default hub also under `/api`.
package struct FrontEndHub: Sendable {
  package let name: HubName
  /// Authenticate the hub's callers; asked in order. Several hubs may share one.
  package let authenticators: [any Authenticator]
  /// The quotas of the callers.
  package let quotas: QuotaPolicy

  package init(name: HubName, authenticators: [any Authenticator], quotas: QuotaPolicy = .none) {
    self.name = name
    self.authenticators = authenticators
    self.quotas = quotas
  }
}

/// Why the front end cannot be created or run. The error of a single request is `Refusal`.
package struct FrontEndError: Error, Hashable, Sendable, CustomStringConvertible {
  /// The kind of failure.
  package struct Code: Hashable, Sendable {
    private enum Wrapped { case configuration, insecureAuthentication, htpasswd, groupFile, notListening }
    private let wrapped: Wrapped

    /// A setting is out of range or contradicts another one.
    package static let configuration = Self(wrapped: .configuration)
    /// The authenticator accepts everybody, and the server would be reachable from other machines.
    package static let insecureAuthentication = Self(wrapped: .insecureAuthentication)
    /// The password file cannot be read, or has an invalid line; the message has the line's number.
    package static let htpasswd = Self(wrapped: .htpasswd)
    /// The group file cannot be read, or has an invalid line; the message has the line's number.
    package static let groupFile = Self(wrapped: .groupFile)
    /// The server ended before it listened.
    package static let notListening = Self(wrapped: .notListening)
  }

  package let code: Code
  /// Names the setting, file or line. Contains no secrets.
  package let message: String

  package init(_ code: Code, _ message: String) {
    self.code = code
    self.message = message
  }

  package var description: String { message }
}
