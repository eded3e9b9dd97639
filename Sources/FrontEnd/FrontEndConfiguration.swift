package import FanfareCore

/// How the front end listens and what it takes.
package struct FrontEndConfiguration: Sendable {
  /// The address to listen on.
  package var host = "127.0.0.1"
  /// The port to listen on; 0: any free one.
  package var port = 8080
  /// Where sends go.
  package var topics = Topics()

  /// The most bytes of a body.
  package var maximumBodySize = 64 * 1024
  /// The most bytes of a batch of sends.
  package var maximumBatchSize = 1024 * 1024
  /// The most bytes of one header field, the request line included.
  package var maximumHeaderFieldSize = 16 * 1024
  /// The most bytes of all header fields of a request, its target included.
  package var maximumHeaderSize = 32 * 1024
  /// The most header fields of a request.
  package var maximumHeaderCount = 100
  /// Connections held at a time; more wait to be accepted.
  package var maximumConnections = 8192
  /// Within what time a request's body must have arrived.
  package var bodyTimeout: Duration = .seconds(30)
  /// After what time without a request a connection is closed; also the time for a request's header section.
  package var idleTimeout: Duration = .seconds(75)
  /// After what time, at most twice as much, a connection is closed whose client takes nothing of its answers.
  package var writeTimeout: Duration = .seconds(75)
  /// How long clients have to read their answers when the front end shuts down.
  package var drainTimeout: Duration = .seconds(20)
  /// For how long a secure payload waits for its recipient.
  package var securePayloadLifetime: Duration = .seconds(24 * 3600)

  package init() {}

  /// Throws when a value is out of range; names the key.
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
    try check(bodyTimeout > .zero, "bodyTimeout", "positive")
    try check(idleTimeout > .zero, "idleTimeout", "positive")
    try check(writeTimeout > .zero, "writeTimeout", "positive")
    try check(drainTimeout > .zero, "drainTimeout", "positive")
    try check(
      securePayloadLifetime >= .seconds(1) && securePayloadLifetime <= .seconds(SendRequest.maximumTimeToLive),
      "securePayloadLifetime", "1 second to \(SendRequest.maximumTimeToLive) seconds")
  }
}
