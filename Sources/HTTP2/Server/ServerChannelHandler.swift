import Logging
import NIOCore
import NIOTLS

/// The server's end of one connection: the last handler of its channel, and the driver of its nghttp2 session.
final class ServerChannelHandler {
  private let connection: HTTP2ServerConnection
  private let configuration: HTTP2ServerConfiguration
  /// Closes the connection if the client's SETTINGS do not arrive in time.
  private let greeting: Scheduled<Void>
  private let handler: HTTP2Server.Handler
  private let logger: Logger

  private var context: ChannelHandlerContext?
  private var session: NGHTTP2Session?
  /// The streams by id; the id is also the slot.
  private var streams: [Int32: ServerStream] = [:]
  private var receiving: ServerStream?
  private var outbound = ByteBuffer()
  /// Submitted when they are written: until then further requests may arrive and be handled, which the frame must
  /// cover.
  private var pendingGoAways: [(lastStreamID: Int32?, code: HTTP2ErrorCode, debugData: [UInt8])] = []
  private var isReading = false
  private var isFlushScheduled = false

  init(
    connection: HTTP2ServerConnection, configuration: HTTP2ServerConfiguration, greeting: Scheduled<Void>,
    handler: @escaping HTTP2Server.Handler, logger: Logger
  ) {
    self.connection = connection
    self.configuration = configuration
    self.greeting = greeting
    self.handler = handler
    self.logger = logger
  }

  /// Performs commands of the application.
  func perform(_ commands: [HTTP2ServerConnection.Command]) {
    guard let session else { return }
    for command in commands {
      do throws(NGHTTP2Failure) {
        try perform(command, on: session)
      } catch {
        // The stream or the session has ended before the command.
        logger.debug("HTTP/2 command dropped", metadata: [LogKeys.error: "\(error.message)"])
      }
    }
    scheduleFlush()
  }

  private func perform(_ command: HTTP2ServerConnection.Command, on session: NGHTTP2Session) throws(NGHTTP2Failure) {
    switch command {
    case .respond(let id, let status, let headers, let body):
      guard let stream = streams[id], !stream.isAnswered else { return }
      stream.isAnswered = true
      stream.body = body
      try session.submit(
        responseTo: id, status: Self.statusField(status), headers: headers, slot: Int(id), hasBody: !body.isEmpty)
    case .reset(let id, let code):
      guard let stream = streams[id], !stream.isAnswered else { return }
      stream.isAnswered = true
      try session.reset(streamID: id, code: code)
    case .goAway(let lastStreamID, let code, let debugData):
      pendingGoAways.append((lastStreamID, code, debugData))
    case .setMaximumConcurrentStreams(let limit):
      try session.setMaximumConcurrentStreams(UInt32(clamping: limit))
    case .close:
      context?.close(promise: nil)
    }
  }

  private static func statusField(_ status: Int) -> HTTP2Headers {
    if status == 200 { return okField }
    return [":status": String(status)]
  }

  private static let okField: HTTP2Headers = [":status": "200"]

  private func startSession() {
    guard session == nil else { return }
    do throws(NGHTTP2Failure) {
      session = try NGHTTP2Session(
        settings: NGHTTP2Settings(
          isClient: false, maximumConcurrentStreams: UInt32(clamping: configuration.maximumConcurrentStreams),
          streamWindow: Int32(clamping: configuration.streamWindow),
          connectionWindow: Int32(clamping: configuration.connectionWindow),
          maximumHeaderListSize: UInt32(clamping: configuration.maximumHeaderListSize),
          answersPings: configuration.answersPings),
        delegate: self)
    } catch {
      return fail(error)
    }
    flush()
  }

  /// Writes after everything else in this turn of the event loop.
  private func scheduleFlush() {
    guard !isReading, !isFlushScheduled else { return }
    isFlushScheduled = true
    let bound = NIOLoopBound(self, eventLoop: connection.eventLoop)
    connection.eventLoop.execute {
      bound.value.isFlushScheduled = false
      bound.value.flush()
    }
  }

  private func flush() {
    guard let session, let context, context.channel.isActive else { return }
    outbound.clear()
    do throws(NGHTTP2Failure) {
      for goAway in pendingGoAways {
        try session.goAway(lastStreamID: goAway.lastStreamID, code: goAway.code, debugData: goAway.debugData)
      }
      pendingGoAways = []
      try session.transmit(into: &outbound)
    } catch {
      return fail(error)
    }
    if outbound.readableBytes > 0 { context.writeAndFlush(wrapOutboundOut(outbound), promise: nil) }
    if session.isFinished { context.close(promise: nil) }
  }

  private func fail(_ failure: NGHTTP2Failure) {
    logger.debug("HTTP/2 connection failed", metadata: [LogKeys.error: "\(failure.message)"])
    context?.close(promise: nil)
  }

  private func release() {
    connection.bind(nil)
    session = nil
    streams = [:]
    receiving = nil
  }
}

extension ServerChannelHandler: ChannelInboundHandler {
  typealias InboundIn = ByteBuffer
  typealias OutboundOut = ByteBuffer

  func handlerAdded(context: ChannelHandlerContext) {
    self.context = context
    connection.bind(self)
    if configuration.tls == nil, context.channel.isActive { startSession() }
  }

  func handlerRemoved(context: ChannelHandlerContext) {
    release()
    self.context = nil
  }

  func channelActive(context: ChannelHandlerContext) {
    if configuration.tls == nil { startSession() }
    context.fireChannelActive()
  }

  func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
    if case .handshakeCompleted(let negotiated)? = event as? TLSUserEvent {
      if negotiated == "h2" { startSession() } else { context.close(promise: nil) }
    }
    context.fireUserInboundEventTriggered(event)
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    guard let session else { return }
    isReading = true
    do throws(NGHTTP2Failure) { try session.receive(unwrapInboundIn(data)) } catch { fail(error) }
  }

  func channelReadComplete(context: ChannelHandlerContext) {
    isReading = false
    flush()
    context.fireChannelReadComplete()
  }

  func channelInactive(context: ChannelHandlerContext) {
    release()
    context.fireChannelInactive()
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    logger.debug("HTTP/2 connection failed", metadata: [LogKeys.error: "\(error)"])
    context.close(promise: nil)
  }
}

extension ServerChannelHandler: SessionDelegate {
  func sessionDidBeginHeaders(streamID: Int32, slot: Int?) {
    if let known = streams[streamID] {
      receiving = known
      return
    }
    let stream = ServerStream(id: streamID)
    session?.attach(slot: Int(streamID), to: streamID)
    streams[streamID] = stream
    receiving = stream
  }

  func sessionDidReceiveHeader(name: Span<UInt8>, value: Span<UInt8>) -> Bool {
    guard let stream = receiving, !stream.isAnswered, name.count > 1 else { return true }
    // A small block can expand to a huge list, so the announced size is enforced.
    guard stream.request.headers.listSize + name.count + value.count <= configuration.maximumHeaderListSize else {
      refuse(stream)
      return true
    }
    guard name[0] == UInt8(ascii: ":") else {
      stream.request.headers.append(name: name, value: value)
      return true
    }
    // The pseudo fields of a request differ in their second letter, except `:scheme`, which is not needed.
    switch name[1] {
    case UInt8(ascii: "m"): stream.request.method = String(copying: value)
    case UInt8(ascii: "p"): stream.request.path = String(copying: value)
    case UInt8(ascii: "a"): stream.request.authority = String(copying: value)
    default: break
    }
    return true
  }

  func sessionDidReceiveData(_ data: Span<UInt8>, streamID: Int32, slot: Int?) {
    guard let stream = streams[streamID], !stream.isAnswered else { return }
    guard stream.request.body.count + data.count <= configuration.maximumBodyBytes else { return refuse(stream) }
    stream.request.body.append(copying: data)
  }

  func sessionDidReceiveEnd(streamID: Int32, slot: Int?) {
    guard let stream = streams[streamID], !stream.isHandedOver, !stream.isAnswered else { return }
    stream.isHandedOver = true
    handler(stream.request, HTTP2Responder(connection: connection, streamID: streamID))
  }

  func sessionDidCloseStream(streamID: Int32, slot: Int?, code: HTTP2ErrorCode) { streams[streamID] = nil }

  func sessionDidNotSendHeaders(streamID: Int32, slot: Int?) {}

  func sessionDidReceiveSettings(smallestHeaderTable: Int?) { greeting.cancel() }

  func sessionDidReceivePingAcknowledgement() {}

  func sessionDidReceiveGoAway(lastStreamID: Int32, code: HTTP2ErrorCode, debugData: [UInt8]) {}

  // A server makes no requests.
  func sessionNeedsRequest(slot: Int, for use: (HTTP2Request) -> Void) -> Bool { false }

  func sessionNeedsBody(slot: Int, limit: Int) -> (piece: ArraySlice<UInt8>, isLast: Bool)? {
    guard let stream = streams[Int32(slot)] else { return ([], true) }
    let start = stream.bodySent
    stream.bodySent = min(stream.body.count, start + limit)
    return (stream.body[start..<stream.bodySent], stream.bodySent == stream.body.count)
  }

  /// Resets a stream whose request is too large.
  private func refuse(_ stream: ServerStream) {
    stream.isAnswered = true
    // The reset fails only if the stream has ended already.
    try? session?.reset(streamID: stream.request.streamID, code: .enhanceYourCalm)
  }
}

/// A client's request and its answer. Used on the connection's event loop only.
final class ServerStream {
  var request: HTTP2ServerRequest
  var isHandedOver = false
  /// Whether an answer or RST_STREAM has been submitted.
  var isAnswered = false
  /// The body of the answer.
  var body: [UInt8] = []
  /// Bytes of the body that have been sent.
  var bodySent = 0

  init(id: Int32) { request = HTTP2ServerRequest(streamID: id) }
}
