import CNGHTTP2
package import NIOCore

/// One nghttp2 session: bytes in, callbacks out; frames in, bytes out. It does no I/O.
///
/// Not thread-safe; used on one event loop. It does not retain its delegate, which owns the session and is its only
/// caller.
@safe package final class NGHTTP2Session {
  private let session: OpaquePointer
  private let context: CallbackContext
  /// The fields of the block being submitted; kept for its capacity.
  private var fields: [nghttp2_nv] = unsafe []
  private let isClient: Bool
  /// Encodes the fields of a client's requests.
  private var encoder = HPACKEncoder()
  /// The block being written; kept for its capacity.
  private var block: [UInt8] = []
  private var hasFailed = false

  /// The first call of `transmit` writes the SETTINGS and the enlarged connection window.
  package init(settings: NGHTTP2Settings, delegate: any SessionDelegate) throws(NGHTTP2Failure) {
    var callbacks: OpaquePointer?
    try unsafe NGHTTP2Failure.check(nghttp2_session_callbacks_new(&callbacks))
    defer { unsafe nghttp2_session_callbacks_del(callbacks) }
    unsafe CallbackContext.install(in: callbacks)
    if settings.isExposed { unsafe CallbackContext.installGuards(in: callbacks) }

    var option: OpaquePointer?
    try unsafe NGHTTP2Failure.check(nghttp2_option_new(&option))
    defer { unsafe nghttp2_option_del(option) }
    // Closed streams are kept only for the priority tree, which is not used here.
    unsafe nghttp2_option_set_no_closed_streams(option, 1)
    if !settings.answersPings { unsafe nghttp2_option_set_no_auto_ping_ack(option, 1) }
    if settings.isExposed { unsafe nghttp2_option_set_no_auto_window_update(option, 1) }

    let context = CallbackContext(delegate: delegate)
    let userData = unsafe Unmanaged.passUnretained(context).toOpaque()
    var created: OpaquePointer?
    try unsafe NGHTTP2Failure.check(
      settings.isClient
        ? nghttp2_session_client_new2(&created, callbacks, userData, option)
        : nghttp2_session_server_new2(&created, callbacks, userData, option))
    guard let created = unsafe created else { throw NGHTTP2Failure(code: NGHTTP2_ERR_NOMEM.rawValue) }
    unsafe self.session = created
    self.context = context
    isClient = settings.isClient
    try submit(settings)
  }

  deinit { unsafe nghttp2_session_del(session) }

  // MARK: Bytes

  /// Passes received bytes to the session, which calls the delegate. Throws if the peer violated the protocol; the
  /// session then has only a GOAWAY left to transmit.
  package func receive(_ buffer: ByteBuffer) throws(NGHTTP2Failure) {
    let taken = unsafe buffer.withUnsafeReadableBytes { bytes in
      unsafe nghttp2_session_mem_recv(session, bytes.baseAddress?.assumingMemoryBound(to: UInt8.self), bytes.count)
    }
    if taken < 0 { throw NGHTTP2Failure(code: Int32(truncatingIfNeeded: taken)) }
  }

  /// Appends what the session may send now; ends with the first frame beyond `limit` bytes. After an error nothing more
  /// is sent, because fields that were encoded and not sent are missing in the peer's header table.
  package func transmit(into buffer: inout ByteBuffer, limit: Int = .max) throws(NGHTTP2Failure) {
    guard !hasFailed else { return }
    do throws(NGHTTP2Failure) { try transmitFrames(into: &buffer, limit: limit) } catch {
      hasFailed = true
      throw error
    }
  }

  private func transmitFrames(into buffer: inout ByteBuffer, limit: Int) throws(NGHTTP2Failure) {
    while buffer.readableBytes < limit {
      var data: UnsafePointer<UInt8>?
      let count = unsafe nghttp2_session_mem_send(session, &data)
      if count < 0 { throw NGHTTP2Failure(code: Int32(truncatingIfNeeded: count)) }
      guard count > 0, let data = unsafe data else { return }
      // The library returns one frame at a time.
      let frame = unsafe UnsafeBufferPointer(start: data, count: count)
      if isClient, unsafe frame[3] == UInt8(NGHTTP2_HEADERS.rawValue) {
        try unsafe writeRequest(standingIn: frame, to: &buffer)
      } else {
        unsafe buffer.writeBytes(UnsafeRawBufferPointer(frame))
      }
    }
  }

  /// Writes a request's HEADERS in place of nghttp2's frame, which contains the method only.
  private func writeRequest(
    standingIn frame: UnsafeBufferPointer<UInt8>, to buffer: inout ByteBuffer
  ) throws(NGHTTP2Failure) {
    let id = unsafe frame[5..<9].reduce(0) { $0 << 8 | UInt32($1) }
    // Moved into a local variable, because every access to a property of a class is checked for exclusivity.
    var block = self.block
    self.block = []
    block.removeAll(keepingCapacity: true)
    // Passed to a closure, because every copy of a request counts references.
    guard unsafe context.withRequest(session, Int32(id), { encoder.encode($0, into: &block) }) else {
      throw NGHTTP2Failure(code: NGHTTP2_ERR_INVALID_STATE.rawValue)
    }
    var (type, flags) = unsafe (NGHTTP2_HEADERS, frame[4] & UInt8(NGHTTP2_FLAG_END_STREAM.rawValue))
    var rest = block[...]
    repeat {
      let piece = rest.prefix(Self.frameSize)
      rest = rest.dropFirst(Self.frameSize)
      if rest.isEmpty { flags |= UInt8(NGHTTP2_FLAG_END_HEADERS.rawValue) }
      // The frame header (RFC 9113 §4.1).
      buffer.writeMultipleIntegers(
        UInt8(truncatingIfNeeded: piece.count >> 16), UInt16(truncatingIfNeeded: piece.count))
      buffer.writeMultipleIntegers(UInt8(type.rawValue), flags, id)
      buffer.writeBytes(piece)
      (type, flags) = (NGHTTP2_CONTINUATION, 0)
    } while !rest.isEmpty
    self.block = block
  }

  /// The largest frame that every peer accepts (RFC 9113 §4.2).
  private static let frameSize = 16384

  /// Whether the session neither expects nor has anything more, so that the connection may be closed.
  package var isFinished: Bool {
    unsafe nghttp2_session_want_read(session) == 0 && nghttp2_session_want_write(session) == 0
  }

  // MARK: The peer's settings

  /// The peer's `SETTINGS_MAX_CONCURRENT_STREAMS`; very large if it sent none.
  var peerStreamLimit: Int {
    Int(unsafe nghttp2_session_get_remote_settings(session, NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS))
  }

  /// Limits the header table to the peer's `SETTINGS_HEADER_TABLE_SIZE`. `smallest` is the smallest value, if the peer
  /// sent several (RFC 7541 §4.2).
  func limitHeaderTable(smallest: Int?) {
    if let smallest { encoder.limitTable(to: smallest) }
    encoder.limitTable(to: Int(unsafe nghttp2_session_get_remote_settings(session, NGHTTP2_SETTINGS_HEADER_TABLE_SIZE)))
  }

  /// The peer's `SETTINGS_MAX_HEADER_LIST_SIZE`; very large if it sent none.
  var peerHeaderListLimit: Int {
    Int(unsafe nghttp2_session_get_remote_settings(session, NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE))
  }

  // MARK: Frames

  /// Queues a request, attaches `slot` to its stream, and returns the stream's id. When it is sent, the delegate is
  /// asked for the request and its body.
  func submit(request: HTTP2Request, slot: Int) throws(NGHTTP2Failure) -> Int32 {
    // nghttp2 needs the method to judge the answer. The fields are encoded when they are sent.
    try unsafe withFields(request.shared, most: 1) { fields throws(NGHTTP2Failure) in
      var provider = unsafe CallbackContext.bodyProvider(slot: slot)
      let id = unsafe withUnsafePointer(to: &provider) { provider in
        unsafe nghttp2_submit_request(
          session, nil, fields.baseAddress, fields.count, request.body.isEmpty ? nil : provider,
          CallbackContext.pointer(slot: slot))
      }
      try NGHTTP2Failure.check(id)
      return id
    }
  }

  /// Queues the answer to a stream of the peer. The delegate is asked for the body, if there is one.
  package func submit(responseTo streamID: Int32, status: HTTP2Headers, headers: HTTP2Headers, slot: Int, hasBody: Bool)
    throws(NGHTTP2Failure)
  {
    _ = try unsafe withFields(status, then: headers) { fields throws(NGHTTP2Failure) in
      var provider = unsafe CallbackContext.bodyProvider(slot: slot)
      let result = unsafe withUnsafePointer(to: &provider) { provider in
        unsafe nghttp2_submit_response(session, streamID, fields.baseAddress, fields.count, hasBody ? provider : nil)
      }
      try NGHTTP2Failure.check(result)
      return result
    }
  }

  /// Asks the delegate again for the body of a stream. Has no effect unless it had none when it was asked.
  package func resume(streamID: Int32) { _ = unsafe nghttp2_session_resume_data(session, streamID) }

  /// Attaches `slot` to a stream of the peer.
  package func attach(slot: Int, to streamID: Int32) {
    unsafe nghttp2_session_set_stream_user_data(session, streamID, CallbackContext.pointer(slot: slot))
  }

  /// Queues RST_STREAM; a request whose headers are not sent yet is withdrawn.
  package func reset(streamID: Int32, code: HTTP2ErrorCode) throws(NGHTTP2Failure) {
    try unsafe NGHTTP2Failure.check(
      nghttp2_submit_rst_stream(session, UInt8(NGHTTP2_FLAG_NONE.rawValue), streamID, code.rawValue))
  }

  /// Queues a response's interim header block, such as `100`.
  package func submit(interimTo streamID: Int32, status: HTTP2Headers) throws(NGHTTP2Failure) {
    _ = try unsafe withFields(status) { fields throws(NGHTTP2Failure) in
      let result = unsafe nghttp2_submit_headers(
        session, UInt8(NGHTTP2_FLAG_NONE.rawValue), streamID, nil, fields.baseAddress, fields.count, nil)
      try NGHTTP2Failure.check(result)
      return result
    }
  }

  /// Opens the windows of the connection and, if it still exists, of the stream by `count` received bytes.
  package func consume(_ count: Int, streamID: Int32) throws(NGHTTP2Failure) {
    try unsafe NGHTTP2Failure.check(nghttp2_session_consume(session, streamID, count))
  }

  /// Sets the size of a stream's receive window; of the connection's, if `streamID` is 0.
  package func setWindow(_ size: Int, streamID: Int32) throws(NGHTTP2Failure) {
    try unsafe NGHTTP2Failure.check(
      nghttp2_session_set_local_window_size(
        session, UInt8(NGHTTP2_FLAG_NONE.rawValue), streamID, Int32(clamping: size)))
  }

  /// Queues GOAWAY, after which the session only sends what is queued.
  package func terminate(_ code: HTTP2ErrorCode) throws(NGHTTP2Failure) {
    try unsafe NGHTTP2Failure.check(nghttp2_session_terminate_session(session, code.rawValue))
  }

  /// Queues a PING.
  func ping() throws(NGHTTP2Failure) {
    try unsafe NGHTTP2Failure.check(nghttp2_submit_ping(session, UInt8(NGHTTP2_FLAG_NONE.rawValue), nil))
  }

  /// Queues GOAWAY. `lastStreamID` nil means the last stream of the peer that was processed.
  package func goAway(lastStreamID: Int32?, code: HTTP2ErrorCode, debugData: [UInt8]) throws(NGHTTP2Failure) {
    let last = unsafe lastStreamID ?? nghttp2_session_get_last_proc_stream_id(session)
    try unsafe NGHTTP2Failure.check(
      nghttp2_submit_goaway(session, UInt8(NGHTTP2_FLAG_NONE.rawValue), last, code.rawValue, debugData, debugData.count)
    )
  }

  /// Queues a SETTINGS frame with another limit of concurrent streams.
  package func setMaximumConcurrentStreams(_ limit: UInt32) throws(NGHTTP2Failure) {
    try submit([
      nghttp2_settings_entry(settings_id: Int32(NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS.rawValue), value: limit)
    ])
  }

  private func submit(_ settings: NGHTTP2Settings) throws(NGHTTP2Failure) {
    func entry(_ id: nghttp2_settings_id, _ value: UInt32) -> nghttp2_settings_entry {
      nghttp2_settings_entry(settings_id: Int32(id.rawValue), value: value)
    }
    var entries = [
      entry(NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, UInt32(settings.streamWindow)),
      entry(NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, settings.maximumHeaderListSize),
    ]
    if settings.isClient { entries.append(entry(NGHTTP2_SETTINGS_ENABLE_PUSH, 0)) }
    if let streams = settings.maximumConcurrentStreams {
      entries.append(entry(NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, streams))
    }
    try submit(entries)
    try unsafe NGHTTP2Failure.check(
      nghttp2_session_set_local_window_size(session, UInt8(NGHTTP2_FLAG_NONE.rawValue), 0, settings.connectionWindow))
  }

  private func submit(_ entries: [nghttp2_settings_entry]) throws(NGHTTP2Failure) {
    try unsafe NGHTTP2Failure.check(
      nghttp2_submit_settings(session, UInt8(NGHTTP2_FLAG_NONE.rawValue), entries, entries.count))
  }

  /// Calls `body` with the fields in nghttp2's layout, at most `most` of the first block. nghttp2 copies them during
  /// the call.
  private func withFields(
    _ first: HTTP2Headers, most: Int = .max, then second: HTTP2Headers = HTTP2Headers(),
    body: (UnsafeBufferPointer<nghttp2_nv>) throws(NGHTTP2Failure) -> Int32
  ) throws(NGHTTP2Failure) -> Int32 {
    var result: Result<Int32, NGHTTP2Failure> = .success(0)
    // Moved into a local variable, because every access to a property of a class is checked for exclusivity.
    var fields = unsafe self.fields
    unsafe self.fields = unsafe []
    unsafe fields.removeAll(keepingCapacity: true)
    unsafe first.storage.withUnsafeBufferPointer { firstBytes in
      unsafe Self.append(first, in: firstBytes, most: most, to: &fields)
      unsafe second.storage.withUnsafeBufferPointer { secondBytes in
        unsafe Self.append(second, in: secondBytes, most: .max, to: &fields)
        unsafe fields.withUnsafeBufferPointer { fields in
          do throws(NGHTTP2Failure) { result = .success(try unsafe body(fields)) } catch { result = .failure(error) }
        }
      }
    }
    unsafe self.fields = unsafe fields
    return try result.get()
  }

  /// Appends up to `most` fields of `headers`, whose bytes are `bytes`.
  private static func append(
    _ headers: HTTP2Headers, in bytes: UnsafeBufferPointer<UInt8>, most: Int, to fields: inout [nghttp2_nv]
  ) {
    var (cursor, count) = (0, 0)
    while count < most, let field = headers.field(at: &cursor) {
      count += 1
      unsafe fields.append(
        Self.field(
          name: UnsafeBufferPointer(rebasing: bytes[field.name]),
          value: UnsafeBufferPointer(rebasing: bytes[field.value]),
          flags: field.indexing == .incremental ? NGHTTP2_NV_FLAG_NONE : NGHTTP2_NV_FLAG_NO_INDEX))
    }
  }

  private static func field(
    name: UnsafeBufferPointer<UInt8>, value: UnsafeBufferPointer<UInt8>, flags: nghttp2_nv_flag
  ) -> nghttp2_nv {
    unsafe nghttp2_nv(
      name: UnsafeMutablePointer(mutating: name.baseAddress), value: UnsafeMutablePointer(mutating: value.baseAddress),
      namelen: name.count, valuelen: value.count, flags: UInt8(flags.rawValue))
  }
}
