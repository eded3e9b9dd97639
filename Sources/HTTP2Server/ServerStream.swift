/// One request of a client: as it arrives, and then the answer as it goes out. Belongs to its connection's event loop.
final class ServerStream {
  /// The request so far.
  var request: HTTP2ServerRequest
  /// Whether the handler has been called.
  var isHandedOver = false
  /// Whether an answer or RST_STREAM has been submitted.
  var isAnswered = false
  /// The body of the answer.
  var body: [UInt8] = []
  /// How much of it has gone out.
  var bodySent = 0

  /// The stream with this id, without a request yet.
  init(id: Int32) { request = HTTP2ServerRequest(streamID: id) }
}
