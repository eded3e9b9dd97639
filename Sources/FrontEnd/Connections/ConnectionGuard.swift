import HTTPTypes
import NIOCore
import NIOHTTPTypes

/// Enforces the time limits of one connection, and closes it when its last answer is written.
///
/// - Closes a connection without a request: a new one after a short time, others when idle for long or evicted.
/// - Closes it if answers are not read, or if more is sent of a refused body than is worth reading.
/// - Marks the last answer, and delays closing until all answers are written.
final class ConnectionGuard: ChannelDuplexHandler {
  typealias InboundIn = HTTPRequestPart
  typealias InboundOut = HTTPRequestPart
  typealias OutboundIn = HTTPResponsePart
  typealias OutboundOut = HTTPResponsePart

  /// The time for a client to read its last answer and close its half (RFC 9112 §9.6).
  private static let lingering = TimeAmount.seconds(2)

  /// The most unanswered requests of a connection; the answer to the last one closes it.
  ///
  /// The parser takes a received buffer apart at once: without a limit 256 KiB of the shortest requests would take many
  /// times as much memory.
  private static let maximumPipelined = 128

  /// The limits of one connection.
  struct Limits {
    /// The time for the first request's head to arrive, with the TLS handshake.
    let firstRequestTimeout: Duration
    /// The time for which a connection may be idle.
    let idleTimeout: Duration
    /// The time after which a client that reads nothing of its answers loses the connection.
    let writeTimeout: Duration
    /// The time for a client to send its request's body and read its answers when the server shuts down.
    let drainTimeout: Duration
    /// The most bytes of a body that are read.
    /// Larger than any route accepts: it limits how much of a refused body is read to keep the connection.
    let maximumBodyBytes: Int
  }

  private struct Timers {
    var idle: Scheduled<Void>?
    var write: Scheduled<Void>?
    var drain: Scheduled<Void>?
    var linger: Scheduled<Void>?

    mutating func cancel() {
      for timer in [idle, write, drain, linger] { timer?.cancel() }
      self = Timers()
    }
  }

  private let limits: Limits
  private let connection: ClientConnection
  private let table: ConnectionTable
  /// Whether the connection has a place.
  private let isWelcome: Bool
  private var timers = Timers()
  private var hasHadRequest = false
  private var isReadingBody = false
  /// Whether the connection closes after the answer to the request read last.
  private var isLastRequest = false
  /// Whether the client has offered another protocol (`Upgrade`, `CONNECT`).
  /// From then on the parser keeps all further bytes without parsing them, so that reading must stop.
  private var isOffered = false
  private var bodyBytes = 0
  /// Requests whose answer has not ended.
  private var openRequests = 0
  /// The number of answers that have ended, whether written or not.
  private var endedResponses = 0

  init(limits: Limits, connection: ClientConnection, table: ConnectionTable, isWelcome: Bool) {
    (self.limits, self.connection, self.table, self.isWelcome) = (limits, connection, table, isWelcome)
  }

  func handlerAdded(context: ChannelHandlerContext) {
    if context.channel.isActive { start(context) }
  }

  func channelActive(context: ChannelHandlerContext) {
    start(context)
    context.fireChannelActive()
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    // Further requests must not be carried out, nor count as open: they could not be answered.
    if isLastRequest, !isReadingBody { return }
    switch unwrapInboundIn(data) {
    case .head(let head):
      openRequests += 1
      connection.becomeBusy()
      hasHadRequest = true
      isReadingBody = true
      bodyBytes = 0
      let options = head.connectionOptions
      isOffered = head.method == .connect || options.contains("upgrade")
      if isOffered || options.contains("close") || openRequests >= Self.maximumPipelined { isLastRequest = true }
    case .body(let bytes):
      bodyBytes += bytes.readableBytes
      guard bodyBytes <= limits.maximumBodyBytes else { return context.close(promise: nil) }
    case .end: isReadingBody = false
    }
    context.fireChannelRead(data)
  }

  func read(context: ChannelHandlerContext) {
    if isReadingBody || !isOffered { context.read() }
  }

  func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
    switch event {
    case is Eviction:
      // A request may have arrived meanwhile.
      if openRequests == 0 { context.close(promise: nil) }
    case is ChannelShouldQuiesceEvent:
      // A client that keeps sending requests must not delay the shutdown.
      isLastRequest = true
      if openRequests == 0, unwrittenBytes(context) == 0 { return context.close(promise: nil) }
      limitDrain(context)
    default: context.fireUserInboundEventTriggered(event)
    }
  }

  func channelWritabilityChanged(context: ChannelHandlerContext) {
    if !context.channel.isWritable { watchWrites(context) }
    context.fireChannelWritabilityChanged()
  }

  func close(context: ChannelHandlerContext, mode: CloseMode, promise: EventLoopPromise<Void>?) {
    guard mode == .all else { return context.close(mode: mode, promise: promise) }
    // Closing at once would drop unwritten bytes.
    isLastRequest = true
    context.whenWritten { $0.close(promise: promise) }
    watchWrites(context)
  }

  func channelInactive(context: ChannelHandlerContext) {
    timers.cancel()
    context.fireChannelInactive()
  }

  func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
    switch unwrapOutboundIn(data) {
    case .head(let head):
      if head.headerFields[.connection] == "close" {
        isLastRequest = true
      } else if isLastRequest, openRequests == 1, head.status.kind != .informational {
        var last = head
        last.headerFields[.connection] = "close"
        return context.write(wrapOutboundOut(.head(last)), promise: promise)
      }
    case .body: break
    case .end:
      if openRequests > 0 { openRequests -= 1 }
      endedResponses += 1
      context.write(data, promise: promise)
      if openRequests == 0 { requestsEnded(context) }
      return
    }
    context.write(data, promise: promise)
  }

  private func start(_ context: ChannelHandlerContext) {
    guard isWelcome else { return context.close(promise: nil) }
    watchIdleness(context, after: limits.firstRequestTimeout)
  }

  /// Ends the connection after its last answer, or when others wait for its place.
  private func requestsEnded(_ context: ChannelHandlerContext) {
    connection.becomeIdle(at: .now())
    if isLastRequest || table.isFull { closeOutput(context) }
  }

  /// Closes this half when everything is written, and the other one soon afterwards: if the server closed both at once
  /// while received bytes are unread, the kernel would reset the connection before the client has read its answer.
  private func closeOutput(_ context: ChannelHandlerContext) {
    isLastRequest = true
    guard timers.linger == nil else { return }
    context.whenWritten { context in
      guard context.channel.isActive, self.timers.linger == nil else { return }
      self.timers.linger = context.eventLoop.assumeIsolated().scheduleTask(in: Self.lingering) {
        context.close(promise: nil)
      }
      context.close(mode: .output, promise: nil)
    }
    watchWrites(context)
  }

  /// Closes the connection when it has been idle for long.
  private func watchIdleness(_ context: ChannelHandlerContext, after time: Duration) {
    timers.idle = context.eventLoop.assumeIsolated().scheduleTask(in: TimeAmount(time)) {
      guard self.hasHadRequest else { return context.close(promise: nil) }
      let limit = self.limits.idleTimeout
      guard let since = self.connection.idle else { return self.watchIdleness(context, after: limit) }
      let idle = Duration.nanoseconds((NIODeadline.now() - since).nanoseconds)
      if idle >= limit { return context.close(promise: nil) }
      self.watchIdleness(context, after: limit - idle)
    }
  }

  /// Closes the connection if the client reads nothing of the waiting answers within `writeTimeout`.
  ///
  /// Bytes are added only together with the end of an answer: if both numbers are unchanged, nothing was read.
  private func watchWrites(_ context: ChannelHandlerContext) {
    guard context.channel.isActive, timers.write == nil else { return }
    let seen = (endedResponses, unwrittenBytes(context))
    guard seen.1 > 0 else { return }
    timers.write = context.eventLoop.assumeIsolated().scheduleTask(in: TimeAmount(limits.writeTimeout)) {
      self.timers.write = nil
      if seen == (self.endedResponses, self.unwrittenBytes(context)) {
        context.close(promise: nil)
      } else {
        self.watchWrites(context)
      }
    }
  }

  /// Closes the connection after `drainTimeout`, unless it still waits for an answer of the server.
  private func limitDrain(_ context: ChannelHandlerContext) {
    guard context.channel.isActive, timers.drain == nil else { return }
    timers.drain = context.eventLoop.assumeIsolated().scheduleTask(in: TimeAmount(limits.drainTimeout)) {
      self.timers.drain = nil
      if self.openRequests > 0, !self.isReadingBody, self.unwrittenBytes(context) == 0 {
        self.limitDrain(context)
      } else {
        context.close(promise: nil)
      }
    }
  }

  /// The bytes that are handed over but not yet written to the socket.
  private func unwrittenBytes(_ context: ChannelHandlerContext) -> Int {
    // Fails if the connection is gone; then nothing will be written.
    (try? context.channel.syncOptions?.getOption(.bufferedWritableBytes)) ?? 0
  }
}

extension HTTPRequest {
  /// The options of `Connection` in lower case; they are case-insensitive (RFC 9110 §7.6.1).
  fileprivate var connectionOptions: [String] {
    guard let options = headerFields[.connection] else { return [] }
    return options.split(separator: ",").map { $0.lowercased().filter { !$0.isWhitespace } }
  }
}

// The handler and its timers are confined to one event loop.
@available(*, unavailable)
extension ConnectionGuard: Sendable {}
