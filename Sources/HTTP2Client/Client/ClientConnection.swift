import Glibc
import NIOCore
import NIOPosix
import NIOSSL
import NIOTLS

/// One HTTP/2 connection to a server: the last handler of its channel, and the driver of its nghttp2 session.
///
/// Everything happens on the event loop, in turns: what has arrived is read, free streams are filled from the pool's
/// queue, all frames go out in one write, and what has ended is reported. A turn is ended by `endTurn`.
final class ClientConnection {
  /// Where the connection is in its life.
  enum Phase: Hashable {
    /// TCP is being set up.
    case connecting
    /// TLS and SETTINGS are being exchanged; given up at the deadline.
    case handshaking(until: NIODeadline)
    /// Takes requests.
    case open
    /// Finishes its streams.
    case draining
    /// All requests are reported; only the channel is still to be closed.
    case ended
  }

  /// The number of the connection in its pool.
  let id: Int
  /// What all connections of the pool have in common.
  let settings: ClientConnectionSettings
  /// The pool.
  let owner: any ClientConnectionOwner
  private let eventLoop: any EventLoop

  /// Where the connection is in its life.
  var phase = Phase.connecting
  /// The session, from the end of the TLS handshake until the channel is gone.
  var session: NGHTTP2Session?
  /// The requests on their way.
  var streams = ClientStreamTable()
  /// The slot of the stream whose headers are arriving.
  var receivingSlot: Int?
  /// How many streams may be open at a time, by the peer's SETTINGS and our configuration; 0 before SETTINGS.
  var streamLimit = 0
  /// The peer's `SETTINGS_MAX_HEADER_LIST_SIZE`, within reason.
  var headerListLimit = largestHeaderList
  /// Whether the peer has said GOAWAY, and whether it complained about our load with it.
  var peerGoAway: HTTP2ErrorCode?
  /// When the peer's SETTINGS came.
  var openedAt: NIODeadline?
  /// Whether anything has been asked for.
  var hasBeenAsked = false
  /// Whether a complete answer has come.
  var hasAnswered = false
  /// Requests given up for time since the last byte came in.
  var unansweredInARow = 0

  /// What ended in this turn, to be reported at its end.
  var completions = CompletionCollector()
  /// What is to be sent again before all others, given back at the end of the turn.
  var giveBackFirst: [RequestBatch] = []
  /// What is to be sent again behind all others, given back at the end of the turn.
  var giveBackLast: [RequestBatch] = []

  private var context: ChannelHandlerContext?
  private var isInTurn = false
  private var isNextTurnScheduled = false
  private var outbound = ByteBuffer()
  private var ticks: RepeatedTask?
  private var lastInbound = NIODeadline.now()
  private var pingSentAt: NIODeadline?
  private var isReceiving = false
  /// A failure found while the session was reading; acted on as soon as it is not.
  private var pendingFailure: HTTP2ConnectionError?
  /// No stream's deadline is before this moment.
  var earliestDeadline = NIODeadline.distantFuture

  /// A connection that is not open yet.
  init(id: Int, settings: ClientConnectionSettings, eventLoop: any EventLoop, owner: any ClientConnectionOwner) {
    self.id = id
    self.settings = settings
    self.eventLoop = eventLoop
    self.owner = owner
  }

  /// The most that a request's fields may take, in bytes, whatever the peer accepts.
  static let largestHeaderList = 64 * 1024

  /// Our own `SETTINGS_MAX_HEADER_LIST_SIZE`, in bytes.
  static let maximumHeaderListSize = 32 * 1024

  // MARK: Opening

  /// Connects. The handlers are added once TCP is up, because several addresses may be tried with a channel each.
  func open() {
    eventLoop.assertInEventLoop()
    let (configuration, timeout) = (settings.configuration, TimeAmount(settings.configuration.connectTimeout))
    ClientBootstrap(group: eventLoop)
      .connectTimeout(timeout)
      .resolver(
        HostLookup(
          of: configuration.host, port: configuration.port, until: .now() + timeout, on: settings.lookUpQueue,
          eventLoop: eventLoop, configuration.lookUp)
      )
      .channelOption(.tcpOption(.tcp_nodelay), value: 1)
      .channelOption(.tcpOption(.init(rawValue: TCP_USER_TIMEOUT)), value: settings.acknowledgementTimeout)
      .channelOption(.writeBufferWaterMark, value: .init(low: 128 * 1024, high: 512 * 1024))
      .connect(host: configuration.host, port: configuration.port)
      .assumeIsolated()
      .whenComplete { result in
        switch result {
        case .success(let channel): self.connected(channel)
        case .failure(let error): self.end(HTTP2ConnectionError(.connectFailed, String(describing: error)))
        }
      }
  }

  private func connected(_ channel: any Channel) {
    guard phase == .connecting else {
      channel.close(promise: nil)
      return
    }
    phase = .handshaking(until: .now() + settings.handshakeTimeout)
    let bound = NIOLoopBound(self, eventLoop: eventLoop)
    ticks = eventLoop.scheduleRepeatedTask(initialDelay: settings.tickInterval, delay: settings.tickInterval) { _ in
      bound.value.tick()
    }
    do {
      if let tls = settings.tls {
        try channel.pipeline.syncOperations.addHandler(
          NIOSSLClientHandler(context: tls, serverHostname: settings.tlsServerName))
      }
      try channel.pipeline.syncOperations.addHandler(self)
    } catch {
      end(HTTP2ConnectionError(.tlsFailed, String(describing: error)))
      channel.close(promise: nil)
    }
  }

  /// Speaks HTTP/2 from now on: the preface and our SETTINGS go out.
  private func startSession() {
    guard session == nil, case .handshaking = phase else { return }
    do throws(NGHTTP2Failure) {
      session = try NGHTTP2Session(
        settings: NGHTTP2Settings(
          isClient: true, streamWindow: 1 << 20, connectionWindow: 1 << 24,
          maximumHeaderListSize: UInt32(Self.maximumHeaderListSize)),
        delegate: self)
    } catch {
      return fail(HTTP2ConnectionError(.internalFailure, error.message))
    }
    endTurn()
  }

  // MARK: Turns

  /// Ends a turn: free streams are filled, frames written, ends reported. May be called at any time on the event loop.
  func endTurn() {
    guard !isInTurn, let session, phase != .ended else { return }
    isInTurn = true
    defer { isInTurn = false }
    let hasMore = fillStreams(session)
    let openStreams = streams.count
    flush(session)
    settle()
    if phase == .draining, streams.count == 0 { return close() }
    // nghttp2 answers most violations with GOAWAY alone, and ignores what it is given from then on.
    if session.isFinished {
      return fail(HTTP2ConnectionError(.protocolViolation, "the server broke the rules of HTTP/2"))
    }
    // Streams that were reset have closed while the frames were written, and left room.
    if hasMore || streams.count < openStreams { scheduleTurn() }
  }

  private func fillStreams(_ session: NGHTTP2Session) -> Bool {
    guard phase == .open || phase == .draining, let context else { return false }
    let now = NIODeadline.now()
    let mayTake = phase == .open && context.channel.isWritable
    let (batches, more) = owner.take(
      id, openStreams: streams.count, streamLimit: streamLimit, mayTake: mayTake, now: now)
    let openStreams = streams.count
    for batch in batches { start(batch, on: session, now: now) }
    // Requests that ended without a stream have left their room to others.
    let taken = batches.reduce(0) { $0 + $1.requests.count }
    return more || streams.count < openStreams + taken
  }

  private func flush(_ session: NGHTTP2Session) {
    guard let context, phase != .ended else { return }
    outbound.clear()
    do throws(NGHTTP2Failure) {
      try session.transmit(into: &outbound)
    } catch {
      return fail(HTTP2ConnectionError(.protocolViolation, error.message))
    }
    if outbound.readableBytes > 0 { context.writeAndFlush(wrapOutboundOut(outbound), promise: nil) }
  }

  /// Reports what has ended and gives back what must be sent again.
  private func settle() {
    if !giveBackFirst.isEmpty || !giveBackLast.isEmpty {
      let (first, last) = (giveBackFirst, giveBackLast)
      giveBackFirst.removeAll()
      giveBackLast.removeAll()
      owner.giveBack(id, first: first, last: last)
    }
    completions.deliver()
  }

  /// Has another turn after what else the event loop has to do.
  private func scheduleTurn() {
    guard !isNextTurnScheduled else { return }
    isNextTurnScheduled = true
    eventLoop.assumeIsolated().execute {
      self.isNextTurnScheduled = false
      self.endTurn()
    }
  }

  private func tick() {
    let now = NIODeadline.now()
    switch phase {
    case .handshaking(let deadline):
      if now >= deadline { fail(HTTP2ConnectionError(.handshakeTimeout, "no SETTINGS from the server in time")) }
    case .open, .draining:
      guard let session else { return }
      let isBusy = expireStreams(at: now, on: session)
      if unansweredInARow >= Self.unansweredLimit, now - lastInbound >= settings.pingTimeout {
        return fail(
          HTTP2ConnectionError(.unresponsive, "several requests in a row timed out without a byte from the server"))
      }
      if checkPing(at: now, on: session) || isBusy { endTurn() }
    case .connecting, .ended: break
    }
  }

  /// So many requests that time out while nothing at all comes in mean that the connection is dead.
  private static let unansweredLimit = 3

  /// Looks whether the peer is alive. Returns whether there is something to send.
  private func checkPing(at now: NIODeadline, on session: NGHTTP2Session) -> Bool {
    guard let interval = settings.idlePingInterval else { return false }
    if let pingSentAt {
      if now - pingSentAt >= settings.pingTimeout {
        fail(HTTP2ConnectionError(.unresponsive, "PING was not answered in time"))
      }
      return false
    }
    guard now - lastInbound >= interval else { return false }
    do throws(NGHTTP2Failure) {
      try session.ping()
      pingSentAt = now
    } catch {
      fail(HTTP2ConnectionError(.internalFailure, error.message))
    }
    return true
  }

  /// The peer has answered a PING.
  func pingAnswered() { pingSentAt = nil }

  // MARK: Ending

  /// Takes no requests any more and ends with the last stream. GOAWAY tells the peer.
  func drain() {
    eventLoop.assertInEventLoop()
    switch phase {
    case .open, .draining:
      stopTaking()
      // The connection ends soon in any case; GOAWAY is a courtesy.
      try? session?.goAway(lastStreamID: nil, code: .noError, debugData: [])
      endTurn()
    case .connecting, .handshaking: end(nil)
    case .ended: break
    }
  }

  /// Takes no requests any more.
  func stopTaking() {
    guard phase == .open else { return }
    phase = .draining
    // What is on its way may still be answered.
    owner.draining(id, isFailure: peerGoAway == .enhanceYourCalm || (wasSentAway && streams.count == 0))
  }

  /// Ends at once; what is on its way fails as `closed`.
  func abort() {
    eventLoop.assertInEventLoop()
    failStreams(HTTP2RequestError(.closed, wasPossiblyProcessed: true))
    end(nil)
  }

  /// Ends at once because the connection is of no use any more; what is on its way fails as `connectionLost`.
  func fail(_ error: HTTP2ConnectionError) {
    guard phase != .ended else { return }
    if isReceiving {
      // nghttp2 must not be asked to write from inside its own callbacks.
      pendingFailure = error
      return
    }
    if let session, let context {
      // The last words of the session, a GOAWAY that says what the peer did wrong; if they cannot be had, there are
      // none.
      outbound.clear()
      try? session.transmit(into: &outbound)
      if outbound.readableBytes > 0 { context.writeAndFlush(wrapOutboundOut(outbound), promise: nil) }
    }
    end(error)
  }

  /// Ends in peace: no stream is left.
  private func close() {
    end(wasSentAway ? HTTP2ConnectionError(.closedByPeer, "GOAWAY before the first answer") : nil)
  }

  /// Whether the peer has said GOAWAY without having answered anything, and so soon that without a pause there would be
  /// no end to it.
  private var wasSentAway: Bool { peerGoAway != nil && !hasAnswered && wasBrief }

  /// Whether it has not been open for so long that the next one may come at once, even if none is ever of use.
  private var wasBrief: Bool {
    guard let openedAt else { return true }
    return .now() - openedAt < TimeAmount(settings.configuration.maximumReconnectBackoff)
  }

  /// The one way out: reports everything exactly once and closes the channel.
  private func end(_ error: HTTP2ConnectionError?) {
    guard phase != .ended else { return }
    let wasOpened = phase == .open || phase == .draining
    phase = .ended
    ticks?.cancel()
    let cause = error.map { String(describing: $0) } ?? ""
    failStreams(HTTP2RequestError(.connectionLost, wasPossiblyProcessed: true, message: cause))
    settle()
    // One on which nothing was asked for, and that a proxy ends for idleness, has done its duty.
    let isFailure = peerGoAway == .enhanceYourCalm || (error != nil && !hasAnswered && (hasBeenAsked || wasBrief))
    owner.ended(id, wasOpened: wasOpened, isFailure: isFailure, error: error)
    context?.close(promise: nil)
  }
}

// The handler is used on its own event loop only; NIO checks that when it adds it synchronously.
extension ClientConnection: ChannelInboundHandler {
  typealias InboundIn = ByteBuffer
  typealias OutboundOut = ByteBuffer

  func handlerAdded(context: ChannelHandlerContext) {
    self.context = context
    if settings.tls == nil, context.channel.isActive { startSession() }
  }

  func handlerRemoved(context: ChannelHandlerContext) {
    end(HTTP2ConnectionError(.closedByPeer, "the channel was closed"))
    self.context = nil
    session = nil
  }

  func channelActive(context: ChannelHandlerContext) {
    if settings.tls == nil { startSession() }
    context.fireChannelActive()
  }

  func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
    if case .handshakeCompleted(let negotiated)? = event as? TLSUserEvent {
      if negotiated == "h2" {
        startSession()
      } else {
        fail(
          HTTP2ConnectionError(
            .protocolNotNegotiated, "the server negotiated '\(negotiated ?? "nothing")' instead of h2"))
      }
    }
    context.fireUserInboundEventTriggered(event)
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    guard let session, phase != .ended else { return }
    lastInbound = .now()
    unansweredInARow = 0
    isReceiving = true
    do throws(NGHTTP2Failure) {
      try session.receive(unwrapInboundIn(data))
    } catch {
      pendingFailure = HTTP2ConnectionError(.protocolViolation, error.message)
    }
    isReceiving = false
    if let pendingFailure { fail(pendingFailure) }
  }

  func channelReadComplete(context: ChannelHandlerContext) {
    endTurn()
    context.fireChannelReadComplete()
  }

  func channelWritabilityChanged(context: ChannelHandlerContext) {
    if context.channel.isWritable { scheduleTurn() }
    context.fireChannelWritabilityChanged()
  }

  func channelInactive(context: ChannelHandlerContext) {
    end(HTTP2ConnectionError(.closedByPeer, "the connection was closed"))
    context.fireChannelInactive()
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    if case .handshaking = phase, settings.tls != nil, session == nil {
      fail(HTTP2ConnectionError(.tlsFailed, String(describing: error)))
    } else {
      fail(HTTP2ConnectionError(.closedByPeer, String(describing: error)))
    }
  }
}
