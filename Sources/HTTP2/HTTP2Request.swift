/// One request, with everything needed to send it again.
package struct HTTP2Request: Sendable {
  /// The caller's own number, returned with the completion. It is not sent.
  package var ticket: UInt64

  /// The fields that many requests share: the pseudo fields `:method`, `:scheme` and `:authority` first, in this order,
  /// then `:path` if it is shared too, then the rest.
  package var shared: HTTP2Headers

  /// The fields of this request only. The first is `:path`, unless that is shared.
  package var headers: HTTP2Headers

  /// The body; without one, the header block ends the request.
  package var body: [UInt8]

  /// The time from `submit` to the end of the answer, with the time in the queue and resends.
  package var timeout: Duration

  /// The part of `timeout` after which the request is not started any more, because its content has expired.
  package var patience: Duration

  /// Whether it is bulk: when streams are scarce, it waits behind requests that are not.
  package var isBulk: Bool

  /// The fields are sent unchanged, and none is added. Without a `patience` the request may be started during its whole
  /// `timeout`.
  package init(
    ticket: UInt64, shared: HTTP2Headers, headers: HTTP2Headers, body: [UInt8] = [], timeout: Duration,
    patience: Duration? = nil, isBulk: Bool = false
  ) {
    self.ticket = ticket
    self.shared = shared
    self.headers = headers
    self.body = body
    self.timeout = timeout
    self.patience = patience.map { min($0, timeout) } ?? timeout
    self.isBulk = isBulk
  }

  /// The size of the whole header block, as the peer's `SETTINGS_MAX_HEADER_LIST_SIZE` counts it.
  var headerListSize: Int { shared.listSize + headers.listSize }
}

/// The answer to one request.
package struct HTTP2Response: Sendable {
  /// The HTTP status, 200…599.
  package var status: Int

  /// The fields named in `HTTP2PoolConfiguration.keptResponseHeaders`; all others are skipped.
  package var headers = HTTP2Headers()

  /// The body, at most `HTTP2PoolConfiguration.maximumResponseBodyBytes` long.
  package var body: [UInt8] = []
}

/// The end of one request; there is exactly one for every request submitted.
package struct HTTP2Completion: Sendable {
  package var ticket: UInt64

  /// The answer, with any status, or the reason why there is none.
  package var result: Result<HTTP2Response, HTTP2RequestError>
}

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
