/// Why one request got no answer. It says nothing about the other requests of the pool.
package struct HTTP2RequestError: Error, Sendable, Hashable {
  /// What happened, for deciding what to do next.
  package enum Code: Sendable, Hashable {
    /// The server refused the stream (REFUSED_STREAM) more often than the request may be resent.
    case refused
    /// Connections were shut down under the request (GOAWAY with a smaller last stream) more often than it may be
    /// resent.
    case goAway
    /// The answer was not complete within the request's timeout.
    case deadlineExceeded
    /// The connection broke, or was found dead, while the request was on its way.
    case connectionLost
    /// The server ended the stream with this code instead of an answer.
    case streamReset(HTTP2ErrorCode)
    /// The answer's body is longer than the pool allows.
    case responseTooLarge
    /// The header block is larger than the server (or HTTP/2 framing here) allows; the request was not sent.
    case requestTooLarge
    /// The pool's queue is full; the request was not taken. Slow down.
    case queueFull
    /// Requests of a later generation have taken the connections over.
    case superseded
    /// The pool is closed or was closed under the request.
    case closed
  }

  /// What happened.
  package var code: Code

  /// Whether the server may have acted on the request. False is a guarantee that it has not, so that sending it again
  /// cannot duplicate anything; true means nobody knows.
  package var wasPossiblyProcessed: Bool

  /// More for the log: what was seen. Never contains paths, header values or bodies.
  package var message: String

  /// An error.
  package init(_ code: Code, wasPossiblyProcessed: Bool, message: String = "") {
    self.code = code
    self.wasPossiblyProcessed = wasPossiblyProcessed
    self.message = message
  }
}

extension HTTP2RequestError: CustomStringConvertible {
  package var description: String {
    let fate = wasPossiblyProcessed ? "possibly processed" : "not processed"
    return message.isEmpty ? "\(code) (\(fate))" : "\(code) (\(fate)): \(message)"
  }
}
