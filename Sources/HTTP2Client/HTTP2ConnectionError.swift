/// Why a connection could not be opened, or had to be given up. It concerns all requests on the connection.
package struct HTTP2ConnectionError: Error, Sendable, Hashable {
  /// What happened.
  package enum Code: Sendable, Hashable {
    /// No TCP connection: name resolution, refusal or time-out.
    case connectFailed
    /// TLS failed: certificate, host name or protocol version.
    case tlsFailed
    /// The peer did not agree to `h2` in ALPN.
    case protocolNotNegotiated
    /// TLS and SETTINGS did not arrive within the handshake timeout.
    case handshakeTimeout
    /// The peer broke HTTP/2; nothing on the connection can be understood any more.
    case protocolViolation
    /// A PING was not answered in time, or several requests in a row met silence.
    case unresponsive
    /// The peer or the network closed the connection.
    case closedByPeer
    /// nghttp2 could not be set up (out of memory).
    case internalFailure
    /// The configuration makes no sense; the message names the setting.
    case invalidConfiguration
  }

  /// What happened.
  package var code: Code

  /// The cause in words; no secrets.
  package var message: String

  /// An error.
  package init(_ code: Code, _ message: String) {
    self.code = code
    self.message = message
  }
}

extension HTTP2ConnectionError: CustomStringConvertible {
  package var description: String { "\(code): \(message)" }
}
