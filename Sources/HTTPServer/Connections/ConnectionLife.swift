import NIOCore

/// The time limits of one connection, and its end. Confined to the connection's event loop.
///
/// - Closes a connection without a request: a new one after a short time, others when idle for long or evicted.
/// - Closes it if answers are not read, or more slowly than `ReadingRate`.
/// - Delays closing until all answers are written.
final class ConnectionLife {
  /// The limits of one connection.
  struct Limits {
    /// The time for the first request's head to arrive, with the TLS handshake.
    var firstRequestTimeout: Duration
    /// The time for which a connection may be idle.
    let idleTimeout: Duration
    /// The time after which a client that reads too little of its answers loses the connection; see `ReadingRate`.
    let writeTimeout: Duration
    /// Whether it loses the connection too if it has not read them all, and another client waits for a place.
    let slowReadersGiveWay: Bool
    /// The time for a client to send its request's body and read its answers when the server shuts down.
    let drainTimeout: Duration
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

  /// The time for a client to read its last answer and close its half (RFC 9112 §9.6).
  private static let lingering = TimeAmount.seconds(2)

  /// Whether the connection closes after the answer to the request read last.
  var isLastRequest = false
  /// Requests whose answer has not ended.
  private(set) var openRequests = 0
  /// Whether the body of the request read last is still arriving. Set by the handler.
  var isReadingBody = false

  private let limits: Limits
  private let connection: ClientConnection
  private let table: ConnectionTable
  /// Whether the connection has a place.
  private let isWelcome: Bool
  private var timers = Timers()
  private var hasHadRequest = false
  /// The bytes that were given to the channel, whether written to the socket or not.
  private var givenBytes = 0
  private var context: ChannelHandlerContext?

  init(limits: Limits, connection: ClientConnection, table: ConnectionTable, isWelcome: Bool) {
    (self.limits, self.connection, self.table, self.isWelcome) = (limits, connection, table, isWelcome)
  }

  /// Names the handler whose neighbour closes the connection and writes. Call it first.
  func attach(_ context: ChannelHandlerContext) { self.context = context }

  /// Starts the clock. Call it when the connection is active.
  func start() {
    guard isWelcome else { return closeNow() }
    watchIdleness(after: limits.firstRequestTimeout)
  }

  /// Stops all timers. Call it when the connection is closed.
  func end() {
    timers.cancel()
    context = nil
  }

  /// Notes that a request's head has arrived.
  func requestBegan() {
    openRequests += 1
    connection.becomeBusy()
    hasHadRequest = true
  }

  /// Notes that bytes are given to the channel.
  func wrote(_ bytes: Int) { givenBytes &+= bytes }

  /// Notes that an answer is handed over. Ends the connection after the last one, or when others wait for its place.
  func answerEnded() {
    if openRequests > 0 { openRequests -= 1 }
    guard openRequests == 0 else { return }
    connection.becomeIdle(at: .now())
    if isLastRequest || table.isFull { closeOutput() }
  }

  /// Closes the connection if it is idle: others need its place.
  func evict() {
    // A request may have arrived meanwhile.
    if openRequests == 0 { closeNow() }
  }

  /// Closes the connection after the requests that have begun; within a bounded time, unless an answer of the server is
  /// still missing.
  func drain() {
    // A client that keeps sending requests must not delay the shutdown.
    isLastRequest = true
    // One that has closed its half waits for the client, which must be able to read the last bytes.
    if openRequests == 0, unwrittenBytes == 0, timers.linger == nil { return closeNow() }
    limitDrain()
  }

  /// Closes the connection and drops what is not written.
  func closeNow() { context?.close(promise: nil) }

  /// Closes the connection when everything is written.
  func close(promise: EventLoopPromise<Void>? = nil) {
    guard context != nil else {
      promise?.succeed()
      return
    }
    isLastRequest = true
    whenWritten { $0.close(promise: promise) }
    watchWrites()
  }

  /// Closes this half when everything is written, and the other one soon afterwards: the client must be able to read
  /// its answer before the kernel resets the connection because of bytes that nobody has read.
  func closeOutput() {
    isLastRequest = true
    guard timers.linger == nil else { return }
    whenWritten { context in
      guard context.channel.isActive, self.timers.linger == nil else { return }
      self.timers.linger = context.eventLoop.assumeIsolated().scheduleTask(in: Self.lingering) {
        context.close(promise: nil)
      }
      context.close(mode: .output, promise: nil)
    }
    watchWrites()
  }

  /// Closes the connection if the client reads too little of the waiting answers within `writeTimeout`.
  func watchWrites() {
    guard let context, context.channel.isActive, timers.write == nil else { return }
    let (given, waiting) = (givenBytes, unwrittenBytes)
    guard waiting > 0 else { return }
    let least = ReadingRate.leastBytes(of: waiting, within: limits.writeTimeout)
    timers.write = context.eventLoop.assumeIsolated().scheduleTask(in: TimeAmount(limits.writeTimeout)) {
      self.timers.write = nil
      let written = self.givenBytes &- given + waiting - self.unwrittenBytes
      if written < least || self.mustGiveWay { self.closeNow() } else { self.watchWrites() }
    }
  }

  /// Whether a client that has not read its answers within `writeTimeout` is in another one's place.
  var mustGiveWay: Bool { limits.slowReadersGiveWay && table.isFull }

  /// Calls the closure when all answers handed over so far are written, or cannot be written.
  private func whenWritten(_ act: @escaping (ChannelHandlerContext) -> Void) {
    guard let context else { return }
    let written = context.eventLoop.makePromise(of: Void.self)
    written.futureResult.assumeIsolated().whenComplete { _ in act(context) }
    // An empty write behind them.
    context.writeAndFlush(NIOAny(ByteBuffer()), promise: written)
  }

  /// Closes the connection when it has been idle for long.
  private func watchIdleness(after time: Duration) {
    guard let context else { return }
    timers.idle = context.eventLoop.assumeIsolated().scheduleTask(in: TimeAmount(time)) {
      guard self.hasHadRequest else { return self.closeNow() }
      let limit = self.limits.idleTimeout
      guard let since = self.connection.idle else { return self.watchIdleness(after: limit) }
      let idle = Duration.nanoseconds((NIODeadline.now() - since).nanoseconds)
      if idle >= limit { return self.closeNow() }
      self.watchIdleness(after: limit - idle)
    }
  }

  /// Closes the connection after `drainTimeout`, unless it still waits for an answer of the server.
  private func limitDrain() {
    guard let context, context.channel.isActive, timers.drain == nil else { return }
    timers.drain = context.eventLoop.assumeIsolated().scheduleTask(in: TimeAmount(limits.drainTimeout)) {
      self.timers.drain = nil
      if self.openRequests > 0, !self.isReadingBody, self.unwrittenBytes == 0 {
        self.limitDrain()
      } else {
        self.closeNow()
      }
    }
  }

  /// The bytes that are handed over but not yet written to the socket.
  private var unwrittenBytes: Int {
    // Fails if the connection is gone; then nothing will be written.
    (try? context?.channel.syncOptions?.getOption(.bufferedWritableBytes)) ?? 0
  }
}

// The timers are confined to one event loop.
@available(*, unavailable)
extension ConnectionLife: Sendable {}
