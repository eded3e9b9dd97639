/// Receives the events of a session while it reads or writes.
///
/// All calls come from inside `NGHTTP2Session.receive` or `transmit`, on the connection's event loop. `slot` is the
/// number that the connection attached to the stream, nil if there is none. An implementation may submit frames, but
/// must not call `receive` or `transmit`, nor release the session.
package protocol SessionDelegate: AnyObject {
  /// A block of headers begins on a stream.
  func sessionDidBeginHeaders(streamID: Int32, slot: Int?)

  /// A field of the block that began last.
  func sessionDidReceiveHeader(name: Span<UInt8>, value: Span<UInt8>)

  /// A piece of a body.
  func sessionDidReceiveData(_ data: Span<UInt8>, streamID: Int32, slot: Int?)

  /// The peer has sent the last frame of a stream.
  func sessionDidReceiveEnd(streamID: Int32, slot: Int?)

  /// A stream has ended. Called once for every stream that existed.
  func sessionDidCloseStream(streamID: Int32, slot: Int?, code: HTTP2ErrorCode)

  /// A request's header block could not be sent. `sessionDidCloseStream` may follow.
  func sessionDidNotSendHeaders(streamID: Int32, slot: Int?)

  /// The peer's SETTINGS are in force. `smallestHeaderTable` is the smallest `SETTINGS_HEADER_TABLE_SIZE` among them,
  /// if there is one.
  func sessionDidReceiveSettings(smallestHeaderTable: Int?)

  /// The peer answered a PING.
  func sessionDidReceivePingAcknowledgement()

  /// The peer sent GOAWAY. Streams above `lastStreamID` are closed with `refusedStream` right after this call.
  func sessionDidReceiveGoAway(lastStreamID: Int32, code: HTTP2ErrorCode, debugData: [UInt8])

  /// A request's header block is sent now: calls `use` with the request and returns true, or returns false if there is
  /// none. `use` must call neither the delegate nor the session.
  func sessionNeedsRequest(slot: Int, for use: (HTTP2Request) -> Void) -> Bool

  /// Returns the next piece of a body, at most `limit` bytes, and whether it is the last.
  func sessionNeedsBody(slot: Int, limit: Int) -> (piece: ArraySlice<UInt8>, isLast: Bool)
}
