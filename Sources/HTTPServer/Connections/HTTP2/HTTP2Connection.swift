import HTTP2
import HTTPTypes
import NIOCore

/// An HTTP/2 connection of a client: the last handler of its channel, and the driver of its nghttp2 session.
///
/// A request that arrives whole, at once or soon, is handed over whole, any other one in parts: the head first, and the
/// body when the task asks for it, so only after the caller is admitted. Until the first one is, the windows, of 65,535
/// bytes, limit what is held of all bodies. Then they grow by the largest body, and open as the task reads. That of the
/// connection stays as large: requests beside or after it may fill it before they are admitted, outside of the budget.
///
/// Frames are read only while the client reads what is sent to it, so that no answers or acknowledgements pile up here.
/// `ConnectionLife` has the limits of time, and ends the connection.
final class HTTP2Connection: ChannelDuplexHandler {
  typealias InboundIn = ByteBuffer
  typealias OutboundIn = ByteBuffer
  typealias OutboundOut = ByteBuffer

  struct Limits: Sendable {
    let head: HTTP2Head.Limits
    /// The most bytes of a body that a route accepts.
    let bodySize: Int
    /// The time for a request's body to arrive.
    let bodyTimeout: Duration
    /// The time after which a client that reads too little of an answer loses the stream; see `ReadingRate`. At most
    /// twice as long.
    let writeTimeout: Duration
  }

  /// The frames of one read.
  struct Arrival {
    /// The stream whose request head is arriving.
    var stream: HTTP2Stream?
    /// The bytes of the header section that is arriving, decoded.
    var headerBytes = 0
    /// The streams of requests whose head has arrived without the body; some may be handed over since.
    var incomplete: [Int32] = []
    /// Ends the wait for their bodies.
    var timer: Scheduled<Void>?
    /// The bytes since a frame began, those of its CONTINUATION frames and of ignored frames included.
    var frameBytes = 0
    /// The bytes of ignored DATA that a client may send, because it did not know that the stream had ended.
    var lateBytes = 0
    var isReading = false
    /// Whether the channel wants to read, and the client must read first.
    var isHeld = false

    /// Notes the beginning of a frame. More than `limit` bytes since the last one were those of late DATA.
    mutating func frameBegan(beyond limit: Int) {
      if frameBytes > limit { lateBytes = max(0, lateBytes - (frameBytes - limit)) }
      frameBytes = 0
    }
  }

  /// What is sent, and the end.
  private struct Departure {
    /// Requests whose streams have ended, and which `life` does not know of yet: it must not close the connection while
    /// the session is writing.
    var endedRequests = 0
    var isFlushScheduled = false
    /// Whether GOAWAY is queued or sent.
    var isLeaving = false
    /// Whether the connection only sends what is queued.
    var isEnding = false
    /// Looks for answers that are not read.
    var timer: Scheduled<Void>?
  }

  /// The most requests at a time.
  static let maximumStreams = 128
  /// The window of streams, and at first of the connection (RFC 9113 §6.9.2).
  static let firstWindow = 65_535
  /// The buffer for writing is given back if it is larger.
  private static let keptSize = 1 << 14
  /// The time for which a request waits to become whole.
  static let bodyDelay = TimeAmount.milliseconds(5)
  /// The most bytes of one read.
  private static let readSize = 1 << 16
  /// The bytes for one write to the channel, with the frame beyond them. A client that does not read makes this many
  /// more wait than the channel's limit.
  private static let writeSize = 1 << 16

  let connection: ClientConnection
  let limits: Limits
  let budgets: ByteBudgets
  let life: ConnectionLife
  private let table: ConnectionTable
  let application: any Application

  private(set) var session: NGHTTP2Session?
  private(set) var context: ChannelHandlerContext?
  var streams: [Int32: HTTP2Stream] = [:]
  /// Streams that have ended, for their memory.
  private var spare: [HTTP2Stream] = []
  var frames: FrameBudget
  var arrival = Arrival()
  var handover = StreamHandover()
  private var departure = Departure()
  /// Not in `departure`, which the session's calls change while it writes.
  private var outbound = ByteBuffer()
  /// Whether answers wait for `flushAnswers`.
  var hasAnswers = false
  /// Kept for its memory.
  var answerFields = HTTP2Headers()

  init(
    _ connection: ClientConnection, limits: Limits, budgets: ByteBudgets, life: ConnectionLife, table: ConnectionTable,
    application: any Application
  ) {
    (self.connection, self.limits, self.budgets, self.life) = (connection, limits, budgets, life)
    (self.table, self.application) = (table, application)
    frames = FrameBudget(at: .now())
  }

  func handlerAdded(context: ChannelHandlerContext) {
    self.context = context
    life.attach(context)
    life.start()
    do throws(NGHTTP2Failure) {
      session = try NGHTTP2Session(
        settings: NGHTTP2Settings(
          isClient: false, maximumConcurrentStreams: UInt32(Self.maximumStreams), streamWindow: Int32(Self.firstWindow),
          // Callers behind a proxy must not wait for each other's admission.
          connectionWindow: Int32(connection.isProxy ? Self.firstWindow + limits.bodySize : Self.firstWindow),
          maximumHeaderListSize: UInt32(clamping: limits.head.size), isExposed: true),
        delegate: self)
    } catch {
      return life.closeNow()
    }
    flush()
  }

  func handlerRemoved(context: ChannelHandlerContext) {
    close()
    self.context = nil
  }

  func channelInactive(context: ChannelHandlerContext) { close() }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    guard !departure.isEnding, let session else { return }
    let bytes = unwrapInboundIn(data)
    arrival.isReading = true
    arrival.frameBytes += bytes.readableBytes
    do throws(NGHTTP2Failure) { try session.receive(bytes) } catch {
      return end(error.isFlood ? .enhanceYourCalm : .protocolError)
    }
    // A header section with its continuations, or ignored frames, of which the session does not tell.
    if arrival.frameBytes > ignoredSize + arrival.lateBytes { end(.enhanceYourCalm) }
  }

  func channelReadComplete(context: ChannelHandlerContext) {
    handOverIncomplete()
    arrival.isReading = false
    flush()
  }

  func read(context: ChannelHandlerContext) {
    if context.channel.isWritable { context.read() } else { arrival.isHeld = true }
  }

  func channelWritabilityChanged(context: ChannelHandlerContext) {
    guard context.channel.isWritable else { return life.watchWrites() }
    flush()
    guard arrival.isHeld, context.channel.isWritable else { return }
    arrival.isHeld = false
    context.read()
  }

  func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
    switch event {
    case is Eviction:
      if life.openRequests == 0 {
        leave()
        flush()
      }
      life.evict()
    case is ChannelShouldQuiesceEvent:
      leave()
      flush()
      life.drain()
    // HTTP/2 has no half-closed connections.
    case ChannelEvent.inputClosed: life.close()
    default: break
    }
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) { life.closeNow() }

  func close(context: ChannelHandlerContext, mode: CloseMode, promise: EventLoopPromise<Void>?) {
    // Closing at once would drop unwritten bytes.
    if mode == .all { life.close(promise: promise) } else { context.close(mode: mode, promise: promise) }
  }

  /// The most bytes of ignored frames or of a header section, late DATA aside.
  var ignoredSize: Int { 2 * limits.head.size + Self.readSize }

  /// Whether nothing more is read.
  var isEnding: Bool { departure.isEnding }

  /// Refuses further requests.
  private func leave() {
    life.isLastRequest = true
    guard !departure.isLeaving else { return }
    departure.isLeaving = true
    // Fails only if the session has ended.
    try? session?.goAway(lastStreamID: nil, code: .noError, debugData: [])
  }

  /// Ends the connection because of an error of the client. Nothing more is read.
  func end(_ code: HTTP2.HTTP2ErrorCode) {
    guard !departure.isEnding else { return }
    departure.isEnding = true
    if code == .enhanceYourCalm { table.noteFlood() }
    // Fails only if the session has ended.
    try? session?.terminate(code)
    scheduleFlush()
  }

  func add(_ streamID: Int32) -> HTTP2Stream {
    let stream = spare.popLast() ?? HTTP2Stream(id: streamID, budgets: budgets)
    stream.reset(id: streamID)
    streams[streamID] = stream
    return stream
  }

  /// Notes that a stream has ended, with an answer or without. Called by the session; a flush follows.
  func remove(_ stream: HTTP2Stream) {
    streams[stream.id] = nil
    stream.pending?.abandon()
    handover.waitingBytes -= stream.answer.waitingBytes
    // What is in its window may be on its way.
    if !stream.isRequestEnded {
      arrival.lateBytes += stream.body?.isWanted == true ? Self.firstWindow + limits.bodySize : Self.firstWindow
    }
    if stream.isRunning { handover.keep(stream.charge.handOver(), of: stream.id) }
    stream.endBody()
    stream.endAnswer()
    consume(stream)
    if stream.isHandedOver { departure.endedRequests += 1 }
    // Others may know one that was handed over in parts.
    if stream.body == nil {
      stream.head.reset()
      spare.append(stream)
    }
  }

  /// Writes after everything else in this turn of the event loop.
  func scheduleFlush() {
    guard !arrival.isReading, !departure.isFlushScheduled, let context else { return }
    departure.isFlushScheduled = true
    context.eventLoop.assumeIsolated().execute {
      self.departure.isFlushScheduled = false
      self.flush()
    }
  }

  /// Writes what the session may send, while the client reads.
  func flush() {
    guard let session else { return }
    writeFrames()
    if departure.endedRequests > 0 {
      // After the last answer the connection is closed if others need its place.
      if departure.endedRequests >= life.openRequests, table.isFull {
        leave()
        writeFrames()
      }
      while departure.endedRequests > 0 {
        departure.endedRequests -= 1
        life.answerEnded()
      }
    }
    handover.resume()
    // A shutdown does not wait for long for what the client has to do.
    if departure.isLeaving {
      life.isReadingBody = handover.waitingBytes > 0 || streams.values.contains { $0.body?.isEnded == false }
    }
    if session.isFinished {
      departure.isEnding = true
      life.closeOutput()
    } else {
      watchAnswers()
    }
  }

  private func writeFrames() {
    do throws(NGHTTP2Failure) {
      while let context, let session, context.channel.isWritable {
        outbound.clear(minimumCapacity: 1024)
        try session.transmit(into: &outbound, limit: Self.writeSize)
        guard outbound.readableBytes > 0 else { break }
        life.wrote(outbound.readableBytes)
        context.writeAndFlush(wrapOutboundOut(outbound), promise: nil)
      }
      if outbound.capacity > Self.keptSize { outbound = ByteBuffer() }
    } catch {
      life.closeNow()
    }
  }

  /// Resets each stream of whose answer the client reads too little within `writeTimeout`, because it keeps a window
  /// closed or opens it slowly. The others go on: behind a proxy they may be those of other clients.
  private func watchAnswers() {
    guard handover.waitingBytes > 0, departure.timer == nil, let context else { return }
    for stream in streams.values { stream.answer.look() }
    departure.timer = context.eventLoop.assumeIsolated().scheduleTask(in: TimeAmount(limits.writeTimeout)) {
      self.departure.timer = nil
      let mustGiveWay = self.life.mustGiveWay
      for stream in self.streams.values
      where stream.answer.isSlow(after: self.limits.writeTimeout) || mustGiveWay && stream.answer.waitingBytes > 0 {
        // Fails only if the session has ended.
        try? self.session?.reset(streamID: stream.id, code: .cancel)
      }
      self.flush()
    }
  }

  private func close() {
    departure.timer?.cancel()
    arrival.timer?.cancel()
    life.end()
    for stream in streams.values {
      stream.pending?.abandon()
      stream.endBody()
      stream.endAnswer()
    }
    streams = [:]
    arrival = Arrival()
    session = nil
    handover.end()
  }
}

// Confined to its event loop; the connection's task calls it there.
@available(*, unavailable)
extension HTTP2Connection: Sendable {}
