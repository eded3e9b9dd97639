import CNGHTTP2
package import NIOCore

/// The object behind nghttp2's `user_data`, which turns the library's C callbacks into calls of the delegate.
///
/// The session keeps it alive for as long as the library may call.
@safe final class CallbackContext {
  /// Neither retained nor checked, because either would cost about ten operations per request. The library calls back
  /// only from inside calls of the session, which is private to its delegate, so the delegate is alive.
  private unowned(unsafe) let delegate: any SessionDelegate

  init(delegate: any SessionDelegate) { unsafe self.delegate = delegate }

  /// Registers all callbacks.
  static func install(in callbacks: OpaquePointer?) {
    unsafe nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks) { session, frame, userData in
      guard let frame = unsafe frame else { return 0 }
      let id = unsafe frame.pointee.hd.stream_id
      unsafe CallbackContext.delegate(userData).sessionDidBeginHeaders(
        streamID: id, slot: CallbackContext.slot(session, id))
      return 0
    }
    unsafe nghttp2_session_callbacks_set_on_header_callback(callbacks) {
      _, _, name, nameLength, value, valueLength, _, userData in
      let name = unsafe Span(_unsafeElements: UnsafeBufferPointer(start: name, count: nameLength))
      let value = unsafe Span(_unsafeElements: UnsafeBufferPointer(start: value, count: valueLength))
      let goesOn = unsafe CallbackContext.delegate(userData).sessionDidReceiveHeader(name: name, value: value)
      // The library then resets the stream, and decodes the rest of the block for the header table alone.
      return goesOn ? 0 : NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE.rawValue
    }
    unsafe nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks) {
      session, _, id, data, count, userData in
      let data = unsafe Span(_unsafeElements: UnsafeBufferPointer(start: data, count: count))
      unsafe CallbackContext.delegate(userData).sessionDidReceiveData(
        data, streamID: id, slot: CallbackContext.slot(session, id))
      return 0
    }
    unsafe nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks) { session, frame, userData in
      guard let frame = unsafe frame else { return 0 }
      unsafe CallbackContext.received(frame, on: session, delegate: CallbackContext.delegate(userData))
      return 0
    }
    unsafe nghttp2_session_callbacks_set_on_stream_close_callback(callbacks) { session, id, code, userData in
      unsafe CallbackContext.delegate(userData).sessionDidCloseStream(
        streamID: id, slot: CallbackContext.slot(session, id), code: HTTP2ErrorCode(rawValue: code))
      return 0
    }
    unsafe nghttp2_session_callbacks_set_on_frame_not_send_callback(callbacks) { session, frame, _, userData in
      guard let frame = unsafe frame, unsafe UInt32(frame.pointee.hd.type) == NGHTTP2_HEADERS.rawValue else { return 0 }
      let id = unsafe frame.pointee.hd.stream_id
      unsafe CallbackContext.delegate(userData).sessionDidNotSendHeaders(
        streamID: id, slot: CallbackContext.slot(session, id))
      return 0
    }
  }

  /// Registers the callbacks that only a session with a peer that may be hostile needs.
  static func installGuards(in callbacks: OpaquePointer?) {
    unsafe nghttp2_session_callbacks_set_on_begin_frame_callback(callbacks) { _, header, userData in
      guard let header = unsafe header?.pointee else { return 0 }
      // A padded frame may consist of padding. No line of a batch is as short as 16 bytes.
      let hasData =
        UInt32(header.type) == NGHTTP2_DATA.rawValue && header.length >= 16
        && UInt32(header.flags) & NGHTTP2_FLAG_PADDED.rawValue == 0
      unsafe CallbackContext.delegate(userData).sessionWillReceiveFrame(
        hasData: hasData, isContinuation: UInt32(header.type) == NGHTTP2_CONTINUATION.rawValue)
      return 0
    }
    // Without it nghttp2 skips fields with invalid characters, and the request goes on without them.
    unsafe nghttp2_session_callbacks_set_on_invalid_header_callback(callbacks) { _, _, _, _, _, _, _, _ in
      NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE.rawValue
    }
  }

  /// `slot` as the library's stream user data, plus one, because a null pointer means that there is none.
  static func pointer(slot: Int) -> UnsafeMutableRawPointer? { unsafe UnsafeMutableRawPointer(bitPattern: slot + 1) }

  /// A provider that asks the delegate for the body of `slot`, piece by piece.
  static func bodyProvider(slot: Int) -> nghttp2_data_provider {
    unsafe nghttp2_data_provider(source: nghttp2_data_source(ptr: pointer(slot: slot))) {
      _, _, target, limit, flags, source, userData in
      guard let slot = unsafe CallbackContext.slot(source?.pointee.ptr) else {
        return ssize_t(NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE.rawValue)
      }
      guard
        let (piece, isLast) = unsafe CallbackContext.delegate(userData).sessionNeedsBody(slot: slot, limit: limit)
      else { return ssize_t(NGHTTP2_ERR_DEFERRED.rawValue) }
      unsafe piece.withUnsafeBufferPointer { piece in
        if let base = piece.baseAddress { unsafe target?.update(from: base, count: piece.count) }
      }
      if isLast { unsafe flags?.pointee |= NGHTTP2_DATA_FLAG_EOF.rawValue }
      return piece.count
    }
  }

  private static func delegate(_ userData: UnsafeMutableRawPointer?) -> any SessionDelegate {
    guard let userData = unsafe userData else {
      preconditionFailure("nghttp2 called back without the user data of its session")
    }
    return unsafe Unmanaged<CallbackContext>.fromOpaque(userData)._withUnsafeGuaranteedRef { unsafe $0.delegate }
  }

  /// Calls `use` with the request of the stream; returns false if there is none.
  func withRequest(_ session: OpaquePointer?, _ streamID: Int32, _ use: (HTTP2Request) -> Void) -> Bool {
    guard let slot = unsafe Self.slot(session, streamID) else { return false }
    return unsafe delegate.sessionNeedsRequest(slot: slot, for: use)
  }

  private static func slot(_ session: OpaquePointer?, _ streamID: Int32) -> Int? {
    unsafe slot(nghttp2_session_get_stream_user_data(session, streamID))
  }

  private static func slot(_ pointer: UnsafeMutableRawPointer?) -> Int? {
    unsafe pointer.map { Int(bitPattern: $0) - 1 }
  }

  private static func received(
    _ frame: UnsafePointer<nghttp2_frame>, on session: OpaquePointer?, delegate: any SessionDelegate
  ) {
    let header = unsafe frame.pointee.hd
    switch nghttp2_frame_type(rawValue: UInt32(header.type)) {
    case NGHTTP2_HEADERS, NGHTTP2_DATA:
      guard UInt32(header.flags) & NGHTTP2_FLAG_END_STREAM.rawValue != 0 else {
        if UInt32(header.type) == NGHTTP2_HEADERS.rawValue {
          unsafe delegate.sessionDidReceiveHeaders(streamID: header.stream_id, slot: slot(session, header.stream_id))
        }
        return
      }
      unsafe delegate.sessionDidReceiveEnd(streamID: header.stream_id, slot: slot(session, header.stream_id))
    case NGHTTP2_SETTINGS:
      guard UInt32(header.flags) & NGHTTP2_FLAG_ACK.rawValue == 0 else { return }
      let settings = unsafe frame.pointee.settings
      let entries = unsafe UnsafeBufferPointer(start: settings.iv, count: settings.niv)
      let table = unsafe entries.lazy.filter { $0.settings_id == Int32(NGHTTP2_SETTINGS_HEADER_TABLE_SIZE.rawValue) }
      delegate.sessionDidReceiveSettings(smallestHeaderTable: unsafe table.map { Int($0.value) }.min())
    case NGHTTP2_PING:
      if UInt32(header.flags) & NGHTTP2_FLAG_ACK.rawValue != 0 { delegate.sessionDidReceivePingAcknowledgement() }
    case NGHTTP2_GOAWAY:
      let goAway = unsafe frame.pointee.goaway
      let debugData = unsafe [UInt8](
        UnsafeBufferPointer(start: goAway.opaque_data, count: min(goAway.opaque_data_len, 1024)))
      unsafe delegate.sessionDidReceiveGoAway(
        lastStreamID: goAway.last_stream_id, code: HTTP2ErrorCode(rawValue: goAway.error_code), debugData: debugData)
    default: break
    }
  }
}

/// Receives the events of a session while it reads or writes.
///
/// All calls come from inside `NGHTTP2Session.receive` or `transmit`, on the connection's event loop. `slot` is the
/// number that the connection attached to the stream, nil if there is none. An implementation may submit frames, but
/// must not call `receive` or `transmit`, nor release the session.
package protocol SessionDelegate: AnyObject {
  /// A frame begins that the library does not ignore; CONTINUATION counts as one. `hasData`: whether it carries a part
  /// of a body that is worth the work. Called if the session is exposed.
  func sessionWillReceiveFrame(hasData: Bool, isContinuation: Bool)

  /// A block of headers begins on a stream.
  func sessionDidBeginHeaders(streamID: Int32, slot: Int?)

  /// A field of the block that began last. Returns whether more of them are wanted; otherwise the stream is reset.
  func sessionDidReceiveHeader(name: Span<UInt8>, value: Span<UInt8>) -> Bool

  /// A block of headers has ended, and the stream goes on.
  func sessionDidReceiveHeaders(streamID: Int32, slot: Int?)

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

  /// Returns the next piece of a body, at most `limit` bytes, and whether it is the last; nil to be asked again after
  /// `NGHTTP2Session.resume`.
  func sessionNeedsBody(slot: Int, limit: Int) -> (piece: ArraySlice<UInt8>, isLast: Bool)?
}

extension SessionDelegate {
  package func sessionWillReceiveFrame(hasData: Bool, isContinuation: Bool) {}
  package func sessionDidReceiveHeaders(streamID: Int32, slot: Int?) {}
}

extension Span where Element == UInt8 {
  /// Whether both spans hold the same bytes.
  package func isEqual(to other: Span<UInt8>) -> Bool {
    guard count == other.count else { return false }
    for index in indices where self[index] != other[index] { return false }
    return true
  }
}

extension Array where Element == UInt8 {
  /// Appends with one copy; a loop over the span in safe Swift checks bounds per byte.
  package mutating func append(copying span: Span<UInt8>) {
    unsafe span.withUnsafeBufferPointer { unsafe self.append(contentsOf: $0) }
  }
}

extension ByteBuffer {
  /// Appends with one copy.
  package mutating func append(copying span: Span<UInt8>) {
    _ = unsafe span.withUnsafeBufferPointer { unsafe writeBytes($0) }
  }
}

extension String {
  /// Decodes UTF-8 and repairs invalid sequences.
  package init(copying span: Span<UInt8>) {
    self = unsafe span.withUnsafeBufferPointer { unsafe String(decoding: $0, as: UTF8.self) }
  }
}
