/// What a session tells its connection while it reads or writes.
///
/// All calls come from inside `NGHTTP2Session.receive` or `NGHTTP2Session.transmit`, on the connection's event loop.
/// `slot` is the number the connection attached to the stream, nil for a stream it has not attached one to. An
/// implementation may submit frames, but must not call `receive` or `transmit`, nor release the session.
package protocol SessionDelegate: AnyObject {
  /// A block of headers begins on a stream.
  func sessionDidBeginHeaders(streamID: Int32, slot: Int?)

  /// One field of the block that began last.
  func sessionDidReceiveHeader(name: Span<UInt8>, value: Span<UInt8>)

  /// A piece of a body.
  func sessionDidReceiveData(_ data: Span<UInt8>, streamID: Int32, slot: Int?)

  /// The peer has sent the last frame of a stream.
  func sessionDidReceiveEnd(streamID: Int32, slot: Int?)

  /// A stream is gone, for whatever reason; comes once for every stream that existed.
  func sessionDidCloseStream(streamID: Int32, slot: Int?, code: HTTP2ErrorCode)

  /// A request's header block could not be sent; the stream's closing may follow.
  func sessionDidNotSendHeaders(streamID: Int32, slot: Int?)

  /// The peer's SETTINGS have arrived and are in force; with the smallest `SETTINGS_HEADER_TABLE_SIZE` among them, if
  /// there is one.
  func sessionDidReceiveSettings(smallestHeaderTable: Int?)

  /// The peer answered our PING.
  func sessionDidReceivePingAcknowledgement()

  /// The peer is going away. Streams above `lastStreamID` are closed with `refusedStream` right after this call.
  func sessionDidReceiveGoAway(lastStreamID: Int32, code: HTTP2ErrorCode, debugData: [UInt8])

  /// A request's header block goes out now: hands the request to `use`, which must call neither the delegate nor the
  /// session. False where there is none.
  func sessionNeedsRequest(slot: Int, for use: (HTTP2Request) -> Void) -> Bool

  /// The next piece of a body to send, at most `limit` bytes, and whether it is the last.
  func sessionNeedsBody(slot: Int, limit: Int) -> (piece: ArraySlice<UInt8>, isLast: Bool)
}
