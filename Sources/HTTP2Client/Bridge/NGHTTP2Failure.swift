import CNGHTTP2

/// An error code of nghttp2.
package struct NGHTTP2Failure: Error, Hashable {
  /// The library's number, negative.
  let code: Int32

  /// The library's words for it.
  package var message: String { unsafe String(cString: nghttp2_strerror(code)) }

  /// Whether no stream can be opened on the session any more: ids are used up, or one side said GOAWAY.
  var isEndOfStreams: Bool {
    code == NGHTTP2_ERR_STREAM_ID_NOT_AVAILABLE.rawValue || code == NGHTTP2_ERR_START_STREAM_NOT_ALLOWED.rawValue
  }

  /// Throws if `result` is one of the library's errors.
  static func check(_ result: Int32) throws(NGHTTP2Failure) {
    if result < 0 { throw NGHTTP2Failure(code: result) }
  }
}
