package import HTTP2Client

/// A complete request.
package struct HTTP2ServerRequest: Sendable {
  /// `:method`.
  package var method = ""
  /// `:path`.
  package var path = ""
  /// `:authority`, empty if the client sent none.
  package var authority = ""
  /// All fields except pseudo fields, in order.
  package var headers = HTTP2Headers()
  package var body: [UInt8] = []
  package var streamID: Int32

  package init(streamID: Int32) { self.streamID = streamID }
}

/// Answers one request, once, from any thread. Answers to streams that have ended are dropped.
package struct HTTP2Responder: Sendable {
  package let connection: HTTP2ServerConnection
  private let streamID: Int32

  init(connection: HTTP2ServerConnection, streamID: Int32) {
    self.connection = connection
    self.streamID = streamID
  }

  /// Sends the answer. Without a body, the header block ends the stream.
  package func respond(status: Int, headers: HTTP2Headers = HTTP2Headers(), body: [UInt8] = []) {
    connection.perform(.respond(streamID, status: status, headers: headers, body: body))
  }

  /// Ends the stream with RST_STREAM instead of an answer.
  package func reset(_ code: HTTP2ErrorCode) { connection.perform(.reset(streamID, code)) }
}
