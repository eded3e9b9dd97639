package import HTTP2Client

/// A request that has arrived whole.
package struct HTTP2ServerRequest: Sendable {
  /// `:method`.
  package var method = ""
  /// `:path`.
  package var path = ""
  /// `:authority`, empty if the client sent none.
  package var authority = ""
  /// All other fields except pseudo fields, in order.
  package var headers = HTTP2Headers()
  /// The body.
  package var body: [UInt8] = []
  /// The stream's id on its connection.
  package var streamID: Int32

  /// A request on the stream `streamID`.
  package init(streamID: Int32) { self.streamID = streamID }
}
