package import HTTP2Client

/// Answers one request: once, from any thread, at once or later. Answers to streams that are gone are dropped.
package struct HTTP2Responder: Sendable {
  /// The connection the request came on.
  package let connection: HTTP2ServerConnection
  private let streamID: Int32

  /// The responder of a stream.
  init(connection: HTTP2ServerConnection, streamID: Int32) {
    self.connection = connection
    self.streamID = streamID
  }

  /// Sends the answer. With an empty body, the header block ends the stream.
  package func respond(status: Int, headers: HTTP2Headers = HTTP2Headers(), body: [UInt8] = []) {
    connection.perform(.respond(streamID, status: status, headers: headers, body: body))
  }

  /// Ends the stream with RST_STREAM instead of an answer.
  package func reset(_ code: HTTP2ErrorCode) { connection.perform(.reset(streamID, code)) }
}
