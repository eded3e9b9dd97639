/// An error code of RST_STREAM and GOAWAY frames (RFC 9113 section 7).
package struct HTTP2ErrorCode: RawRepresentable, Sendable, Hashable, CustomStringConvertible {
  /// The number on the wire.
  package var rawValue: UInt32

  /// The code with this number, known or not.
  package init(rawValue: UInt32) { self.rawValue = rawValue }

  /// Not an error: a graceful end.
  package static let noError = HTTP2ErrorCode(rawValue: 0x0)
  /// The peer broke the protocol.
  package static let protocolError = HTTP2ErrorCode(rawValue: 0x1)
  /// Something unexpected inside the sender of the frame.
  package static let internalError = HTTP2ErrorCode(rawValue: 0x2)
  /// The stream was refused before any processing; sending it again is safe.
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
