/// Why a connection could not be opened, or was closed. It concerns all requests on the connection.
package struct HTTP2ConnectionError: Error, Sendable, Hashable {
  package enum Code: Sendable, Hashable {
    /// No TCP connection: name resolution, refusal or time-out.
    case connectFailed
    /// TLS failed: certificate, host name or protocol version.
    case tlsFailed
    /// The peer did not agree to `h2` in ALPN.
    case protocolNotNegotiated
    /// TLS and SETTINGS did not arrive within the handshake timeout.
    case handshakeTimeout
    /// The peer violated HTTP/2, so that no further frame can be understood.
    case protocolViolation
    /// A PING was not answered in time, or several requests in a row timed out without a byte from the peer.
    case unresponsive
    /// The peer or the network closed the connection.
    case closedByPeer
    /// nghttp2 could not be set up (out of memory).
    case internalFailure
    /// The configuration is invalid; the message names the setting.
    case invalidConfiguration
  }

  package var code: Code

  /// The cause, for the log; contains no secrets.
  package var message: String

  package init(_ code: Code, _ message: String) {
    self.code = code
    self.message = message
  }
}

extension HTTP2ConnectionError: CustomStringConvertible {
  package var description: String { "\(code): \(message)" }
}

/// An error code of RST_STREAM and GOAWAY frames (RFC 9113 §7).
package struct HTTP2ErrorCode: RawRepresentable, Sendable, Hashable, CustomStringConvertible {
  /// The number on the wire.
  package var rawValue: UInt32

  /// Any number, known or not.
  package init(rawValue: UInt32) { self.rawValue = rawValue }

  /// Not an error: a graceful end.
  package static let noError = HTTP2ErrorCode(rawValue: 0x0)
  /// The peer violated the protocol.
  package static let protocolError = HTTP2ErrorCode(rawValue: 0x1)
  /// An unexpected error in the sender of the frame.
  package static let internalError = HTTP2ErrorCode(rawValue: 0x2)
  /// The stream was refused before any processing; it is safe to send it again.
  package static let refusedStream = HTTP2ErrorCode(rawValue: 0x7)
  /// The stream is no longer wanted.
  package static let cancel = HTTP2ErrorCode(rawValue: 0x8)
  /// The peer causes too much load.
  package static let enhanceYourCalm = HTTP2ErrorCode(rawValue: 0xb)
  /// The request must be sent with HTTP/1.1.
  package static let http11Required = HTTP2ErrorCode(rawValue: 0xd)

  /// The name in the RFC, or the number in hexadecimal.
  package var description: String {
    let names = [
      "NO_ERROR", "PROTOCOL_ERROR", "INTERNAL_ERROR", "FLOW_CONTROL_ERROR", "SETTINGS_TIMEOUT", "STREAM_CLOSED",
      "FRAME_SIZE_ERROR",
      "REFUSED_STREAM", "CANCEL", "COMPRESSION_ERROR", "CONNECT_ERROR", "ENHANCE_YOUR_CALM", "INADEQUATE_SECURITY",
      "HTTP_1_1_REQUIRED",
    ]
    return rawValue < names.count ? names[Int(rawValue)] : "0x" + String(rawValue, radix: 16)
  }
}
