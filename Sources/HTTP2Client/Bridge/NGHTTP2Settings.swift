/// Our own side's settings and the session's behaviour.
package struct NGHTTP2Settings {
  /// Whether the session is the client's.
  var isClient: Bool
  /// `SETTINGS_MAX_CONCURRENT_STREAMS`, nil to leave it out.
  var maximumConcurrentStreams: UInt32?
  /// `SETTINGS_INITIAL_WINDOW_SIZE`, in bytes: what the peer may send on one stream before we have read it.
  var streamWindow: Int32
  /// The same for the connection.
  var connectionWindow: Int32
  /// `SETTINGS_MAX_HEADER_LIST_SIZE`, in bytes.
  var maximumHeaderListSize: UInt32
  /// Whether PINGs are answered; a server that shall look dead does not.
  var answersPings = true

  /// Settings of a client or, for tests, of a server.
  package init(
    isClient: Bool, maximumConcurrentStreams: UInt32? = nil, streamWindow: Int32, connectionWindow: Int32,
    maximumHeaderListSize: UInt32, answersPings: Bool = true
  ) {
    self.isClient = isClient
    self.maximumConcurrentStreams = maximumConcurrentStreams
    self.streamWindow = streamWindow
    self.connectionWindow = connectionWindow
    self.maximumHeaderListSize = maximumHeaderListSize
    self.answersPings = answersPings
  }
}
