package import HTTPTypes
package import NIOCore

/// One request on its way from the parser to its handler.
package struct Exchange: Sendable {
  package let method: HTTPRequest.Method
  package let target: RequestTarget
  package let headers: RequestFields
  package let body: RequestBody
  package let bodyLength: BodyLength
  package let connection: ClientConnection
  /// Where an answer can be given later without a task; nil where a task handles the request.
  package private(set) var slot: AnswerSlot?
  /// What the client waits for; nil before a task handles the request.
  package internal(set) var pending: PendingAnswer?

  /// When the request was handed to the application.
  package let start = ContinuousClock.now
  /// The id of the request. The application sets it.
  package var id = ""
  /// The pattern of the route. The application sets it.
  package var pattern: String?
  /// What the path has in place of the open components of the pattern.
  package var parameters = PathParameters()

  init(
    _ method: HTTPRequest.Method, _ target: RequestTarget, headers: RequestFields, body: RequestBody,
    length: BodyLength, on connection: ClientConnection, slot: AnswerSlot?
  ) {
    (self.method, self.target, self.headers) = (method, target, headers)
    (self.body, bodyLength, self.connection, self.slot) = (body, length, connection, slot)
  }

  /// The path without its query, escapes as they were sent.
  package var path: Substring { target.path }

  /// The value of `Host` or `:authority`.
  package var authority: String? { headers.host }

  /// The address of the client: the peer, or the client that a trusted proxy names.
  package var clientAddress: ClientAddress { connection.client(forwardedFor: headers.forwardedFor) }

  /// Whether the client speaks TLS, with this server or with a proxy in front of it.
  package var isSecure: Bool { connection.isSecure || connection.isProxy }

  /// The same exchange while a task handles it.
  package func awaited(as pending: PendingAnswer?) -> Exchange {
    var copy = self
    (copy.pending, copy.slot) = (pending, nil)
    return copy
  }
}

/// What the header section of a request tells of its body.
package enum BodyLength: Equatable, Sendable {
  case none
  /// `Content-Length`. A larger number than an `Int` is the largest.
  case known(Int)
  /// The body comes in chunks.
  case unknown

  /// Whether a body of at least one byte, or of unknown length, is announced.
  package var isAnnounced: Bool { self != .none && self != .known(0) }

  /// Whether the body may have more than `size` bytes.
  package func mayExceed(_ size: Int) -> Bool {
    switch self {
    case .none: false
    case .known(let length): length > size
    case .unknown: true
    }
  }
}

/// The body of a request.
package enum RequestBody: Sendable {
  /// It has arrived whole.
  case whole(ByteBuffer)
  /// Reading it admits it.
  case inParts(BodyStream)
  /// There is no memory for it. Reading it throws, so that refusals of the caller come first.
  case refused

  /// Returns the whole body; nil if it has more than `limit` bytes. Throws `RequestFault` if it cannot be read to its
  /// end, `CancellationError` if the client has gone.
  package func collect(upTo limit: Int) async throws -> ByteBuffer? {
    guard case .inParts(let stream) = self else { return try arrived(upTo: limit) }
    var whole = ByteBuffer()
    for try await part in stream {
      guard whole.readableBytes + part.readableBytes <= limit else { return nil }
      if whole.readableBytes == 0 { whole = part } else { whole.writeImmutableBuffer(part) }
    }
    return whole
  }

  /// Whether it has arrived, or is refused.
  package var isAtHand: Bool { if case .inParts = self { false } else { true } }

  /// The same for a body at hand; nil for any other one.
  package func arrived(upTo limit: Int) throws(RequestFault) -> ByteBuffer? {
    switch self {
    case .whole(let bytes): bytes.readableBytes <= limit ? bytes : nil
    case .inParts: nil
    case .refused: throw BodyCharge.refusal
    }
  }
}
