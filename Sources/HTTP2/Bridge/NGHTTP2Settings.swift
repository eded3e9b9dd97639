import CNGHTTP2

/// The settings of this side, and the session's behaviour.
package struct NGHTTP2Settings {
  var isClient: Bool
  /// `SETTINGS_MAX_CONCURRENT_STREAMS`, nil to leave it out.
  var maximumConcurrentStreams: UInt32?
  /// `SETTINGS_INITIAL_WINDOW_SIZE`: the bytes that the peer may send on one stream before they are read.
  var streamWindow: Int32
  /// The same for the connection.
  var connectionWindow: Int32
  /// `SETTINGS_MAX_HEADER_LIST_SIZE`, in bytes.
  var maximumHeaderListSize: UInt32
  /// Whether PINGs are answered; false for a server that plays dead.
  var answersPings = true
  /// Whether the peer may be hostile. Then windows open by `consume` alone, invalid fields reset their stream, and the
  /// delegate is told of each frame as it begins.
  var isExposed = false

  package init(
    isClient: Bool, maximumConcurrentStreams: UInt32? = nil, streamWindow: Int32, connectionWindow: Int32,
    maximumHeaderListSize: UInt32, answersPings: Bool = true, isExposed: Bool = false
  ) {
    self.isClient = isClient
    self.maximumConcurrentStreams = maximumConcurrentStreams
    self.streamWindow = streamWindow
    self.connectionWindow = connectionWindow
    self.maximumHeaderListSize = maximumHeaderListSize
    self.answersPings = answersPings
    self.isExposed = isExposed
  }
}

/// An error code of nghttp2.
package struct NGHTTP2Failure: Error, Hashable {
  /// The library's number, which is negative.
  let code: Int32

  /// Whether the peer makes more acknowledgements necessary than it reads.
  package var isFlood: Bool { code == NGHTTP2_ERR_FLOODED.rawValue }

  package var message: String { unsafe String(cString: nghttp2_strerror(code)) }

  /// Throws if `result` is one of the library's errors.
  static func check(_ result: Int32) throws(NGHTTP2Failure) {
    if result < 0 { throw NGHTTP2Failure(code: result) }
  }
}
