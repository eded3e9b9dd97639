/// Why one request got no answer. It says nothing about other requests.
package struct HTTP2RequestError: Error, Sendable, Hashable {
  package enum Code: Sendable, Hashable {
    /// The server refused the stream (REFUSED_STREAM) more often than the request may be resent.
    case refused
    /// GOAWAY ended the request's connections more often than it may be resent.
    case goAway
    /// The answer was not complete within the request's timeout.
    case deadlineExceeded
    /// The connection broke or was found dead while the request was in flight.
    case connectionLost
    /// The server ended the stream with this code instead of an answer.
    case streamReset(HTTP2ErrorCode)
    /// The answer's body exceeds the pool's limit.
    case responseTooLarge
    /// The header block exceeds the limit of the server or of this client; the request was not sent.
    case requestTooLarge
    /// The pool's queue is full; the request was not accepted.
    case queueFull
    /// A later generation of requests has replaced the connections.
    case superseded
    /// The pool is closed, or was closed before the request ended.
    case closed
  }

  package var code: Code

  /// Whether the server may have processed the request. False is a guarantee that it has not, so that sending it again
  /// duplicates nothing; true means that it is unknown.
  package var wasPossiblyProcessed: Bool

  /// Details for the log. Never contains paths, header values or bodies.
  package var message: String

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
