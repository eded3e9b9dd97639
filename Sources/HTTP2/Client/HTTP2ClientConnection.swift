import Glibc
import NIOCore
import NIOPosix
import NIOSSL
import NIOTLS

/// One HTTP/2 connection to a server: the last handler of its channel, and the driver of its nghttp2 session.
///
/// Runs on its event loop, in turns: received bytes are read, free streams are filled from the pool's queue, all frames
/// go out in one write, and ended requests are reported. `endTurn` ends a turn.
final class HTTP2ClientConnection {
  enum Phase: Hashable {
    /// TCP is being set up.
    case connecting
    /// TLS and SETTINGS are being exchanged, until the deadline.
    case handshaking(until: NIODeadline)
    /// Takes requests.
    case open
    /// Takes no requests and finishes its streams.
    case draining
    /// All requests are reported; the channel is closing.
    case ended
  }

  /// The connection's number in its pool.
  let id: Int
  let settings: ClientConnectionSettings
  let owner: any ClientConnectionOwner
  private let eventLoop: any EventLoop

  var phase = Phase.connecting
  /// The session, from the end of the TLS handshake until the channel is removed.
  var session: NGHTTP2Session?
  var streams = ClientStreamTable()
  /// The slot of the stream whose headers are arriving.
  var receivingSlot: Int?
  /// The limit of concurrent streams by the peer's SETTINGS and the configuration; 0 before SETTINGS.
  var streamLimit = 0
  /// The peer's `SETTINGS_MAX_HEADER_LIST_SIZE`, at most `largestHeaderList`.
  var headerListLimit = largestHeaderList
  var history: ConnectionHistory
  var liveness = Liveness()

  /// Requests that ended in this turn, reported at its end.
  var completions = CompletionCollector()
  /// Requests to resend before all others, returned to the pool at the end of the turn.
  var requeueFirst: [RequestBatch] = []
  /// Requests to resend after all others, returned to the pool at the end of the turn.
  var requeueLast: [RequestBatch] = []

  private var context: ChannelHandlerContext?
  private var isInTurn = false
  private var isNextTurnScheduled = false
  private var outbound = ByteBuffer()
  private var ticks: RepeatedTask?
  private var isReceiving = false
  /// A failure found while the session was reading; handled as soon as it is not.
  private var pendingFailure: HTTP2ConnectionError?
  /// No stream's deadline is before this moment.
  var earliestDeadline = NIODeadline.distantFuture

  init(id: Int, settings: ClientConnectionSettings, eventLoop: any EventLoop, owner: any ClientConnectionOwner) {
    self.id = id
    self.settings = settings
    history = ConnectionHistory(longestBackoff: TimeAmount(settings.configuration.maximumReconnectBackoff))
    self.eventLoop = eventLoop
    self.owner = owner
  }

  /// The most bytes of a request's fields, whatever the peer accepts.
  static let largestHeaderList = 64 * 1024

  /// The client's own `SETTINGS_MAX_HEADER_LIST_SIZE`, in bytes.
  static let maximumHeaderListSize = 32 * 1024

  // MARK: Opening

  /// Connects. The handlers are added once TCP is up, because each address that is tried has a channel of its own.
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
        case .failure(let error): self.end(HTTP2ConnectionError(connecting: error))
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

  /// Starts HTTP/2: sends the preface and SETTINGS.
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

  /// Ends a turn: fills free streams, writes frames, reports ends. May be called at any time on the event loop.
  func endTurn() {
    guard !isInTurn, let session, phase != .ended else { return }
    isInTurn = true
    defer { isInTurn = false }
    let hasMore = fillStreams(session)
    let openStreams = streams.count
    flush(session)
    settle()
    if phase == .draining, streams.count == 0 { return close() }
    // nghttp2 answers most violations with GOAWAY only, and ignores further input.
    if session.isFinished {
      return fail(HTTP2ConnectionError(.protocolViolation, "the server broke the rules of HTTP/2"))
    }
    // Streams that were reset have closed during the write and left room.
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

  /// Reports ended requests and returns those to resend.
  private func settle() {
    if !requeueFirst.isEmpty || !requeueLast.isEmpty {
      let (first, last) = (requeueFirst, requeueLast)
      requeueFirst.removeAll()
      requeueLast.removeAll()
      owner.requeue(id, first: first, last: last)
    }
    completions.deliver()
  }

  /// Schedules another turn on the event loop.
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
      switch liveness.check(at: now, settings) {
      case .dead(let reason): fail(HTTP2ConnectionError(.unresponsive, reason))
      case .sendPing:
        ping(session, at: now)
        endTurn()
      case .alive: if isBusy { endTurn() }
      }
    case .connecting, .ended: break
    }
  }

  private func ping(_ session: NGHTTP2Session, at now: NIODeadline) {
    do throws(NGHTTP2Failure) {
      try session.ping()
      liveness.pingSent(at: now)
    } catch {
      fail(HTTP2ConnectionError(.internalFailure, error.message))
    }
  }

  // MARK: Ending

  /// Stops taking requests and ends with the last stream; GOAWAY tells the peer.
  func drain() {
    eventLoop.assertInEventLoop()
    switch phase {
    case .open, .draining:
      stopTaking()
      // The connection ends in any case; GOAWAY is a courtesy.
      try? session?.goAway(lastStreamID: nil, code: .noError, debugData: [])
      endTurn()
    case .connecting, .handshaking: end(nil)
    case .ended: break
    }
  }

  /// Stops taking requests.
  func stopTaking() {
    guard phase == .open else { return }
    phase = .draining
    // Requests in flight may still be answered.
    owner.draining(id, isFailure: history.peerGoAway == .enhanceYourCalm || (history.wasSentAway && streams.count == 0))
  }

  /// Ends at once; requests in flight fail as `closed`.
  func abort() {
    eventLoop.assertInEventLoop()
    failStreams(HTTP2RequestError(.closed, wasPossiblyProcessed: true))
    end(nil)
  }

  /// Ends at once because of a failure; requests in flight fail as `connectionLost`.
  func fail(_ error: HTTP2ConnectionError) {
    guard phase != .ended else { return }
    if isReceiving {
      // nghttp2 must not write from inside its own callbacks.
      pendingFailure = error
      return
    }
    if let session, let context {
      // Sends the session's GOAWAY, which names the peer's error; without it the connection is closed all the same.
      outbound.clear()
      try? session.transmit(into: &outbound)
      if outbound.readableBytes > 0 { context.writeAndFlush(wrapOutboundOut(outbound), promise: nil) }
    }
    end(error)
  }

  /// Ends as planned, without streams.
  private func close() {
    end(history.wasSentAway ? HTTP2ConnectionError(.closedByPeer, "GOAWAY before the first answer") : nil)
  }

  /// The only way to end: reports everything exactly once and closes the channel.
  private func end(_ error: HTTP2ConnectionError?) {
    guard phase != .ended else { return }
    let wasOpened = phase == .open || phase == .draining
    phase = .ended
    ticks?.cancel()
    let cause = error.map { String(describing: $0) } ?? ""
    failStreams(HTTP2RequestError(.connectionLost, wasPossiblyProcessed: true, message: cause))
    settle()
    owner.ended(id, wasOpened: wasOpened, isFailure: history.isFailure(endingWith: error), error: error)
    context?.close(promise: nil)
  }
}

// Used on its own event loop only; NIO checks that when the handler is added synchronously.
extension HTTP2ClientConnection: ChannelInboundHandler {
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
    liveness.received(at: .now())
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
