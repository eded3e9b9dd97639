import FanfareCore
import HTTPTypes
import Hummingbird
import NIOCore
import NIOHTTP1
import NIOHTTPTypes

/// Enforces limits and HTTP rules on one connection, between the parser and the framework.
///
/// - Closes the connection if a body arrives too slowly or does not end, or if answers are not read.
/// - Answers `Expect: 100-continue`.
/// - Replaces the framework's answer to malformed HTTP by a problem document.
/// - Delays closing until all earlier answers are written.
final class ConnectionGuard: ChannelDuplexHandler, RemovableChannelHandler {
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
    /// The time for a request's body to arrive.
    let bodyTimeout: Duration
    /// The time after which a client that reads nothing of its answers loses the connection.
    let writeTimeout: Duration
    /// The time for a client to read its answers when the server shuts down.
    let drainTimeout: Duration
    /// The most bytes of a body that are read.
    /// Larger than any route accepts: it limits how much of a refused body is read to keep the connection.
    let maximumBodyBytes: Int
  }

  private struct Timers {
    var body: Scheduled<Void>?
    var write: Scheduled<Void>?
    var drain: Scheduled<Void>?
    var linger: Scheduled<Void>?

    mutating func cancel() {
      for timer in [body, write, drain, linger] { timer?.cancel() }
      self = Timers()
    }
  }

  private let limits: Limits
  private var timers = Timers()
  private var isReadingBody = false
  /// The header fields of the request whose body is being read.
  private var fields: HTTPFields = [:]
  /// Whether the connection closes after the answer to the request read last.
  private var isLastRequest = false
  /// Whether the client has offered another protocol (`Upgrade`, `CONNECT`).
  /// From then on the parser keeps all further bytes without parsing them, so that reading must stop.
  private var isOffered = false
  private var bodyBytes = 0
  /// Requests whose answer has not ended.
  private var openRequests = 0
  private var isWritingResponse = false
  /// The number of answers that have ended, whether written or not.
  private var endedResponses = 0
  private var parserError: HTTPParserError?

  init(limits: Limits) { self.limits = limits }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    // Further requests must not be carried out, nor count as open: they could not be answered.
    if isLastRequest, !isReadingBody { return }
    var data = data
    switch unwrapInboundIn(data) {
    case .head(let head):
      openRequests += 1
      isReadingBody = true
      bodyBytes = 0
      let options = head.connectionOptions
      isOffered = head.method == .connect || options.contains("upgrade")
      isLastRequest = isOffered || options.contains("close") || openRequests >= Self.maximumPipelined
      // Later handlers understand this form only.
      if isLastRequest {
        var last = head
        last.headerFields[.connection] = "close"
        data = wrapInboundOut(.head(last))
      }
      fields = head.headerFields
      // RFC 9110 §10.1.1. While an earlier answer is being written, the client relies on its own timeout.
      if openRequests == 1, head.headerFields[.expect]?.lowercased() == "100-continue" {
        context.writeAndFlush(wrapOutboundOut(.head(HTTPResponse(status: .continue))), promise: nil)
      }
    case .body(let bytes):
      bodyBytes += bytes.readableBytes
      guard bodyBytes <= limits.maximumBodyBytes else { return context.close(promise: nil) }
    case .end:
      isReadingBody = false
      fields = [:]
      timers.body?.cancel()
      timers.body = nil
    }
    context.fireChannelRead(data)
  }

  func channelReadComplete(context: ChannelHandlerContext) {
    // Most requests arrive whole and need no timer.
    if isReadingBody, timers.body == nil {
      timers.body = context.eventLoop.assumeIsolated().scheduleTask(in: TimeAmount(limits.bodyTimeout)) {
        self.bodyIsLate(context: context)
      }
    }
    context.fireChannelReadComplete()
  }

  func read(context: ChannelHandlerContext) {
    if isReadingBody || !isOffered { context.read() }
  }

  func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
    if event is ChannelShouldQuiesceEvent {
      // A client that keeps sending requests must not delay the shutdown.
      isLastRequest = true
      limitDrain(context)
    }
    context.fireUserInboundEventTriggered(event)
  }

  func channelWritabilityChanged(context: ChannelHandlerContext) {
    if !context.channel.isWritable { watchWrites(context) }
    context.fireChannelWritabilityChanged()
  }

  func close(context: ChannelHandlerContext, mode: CloseMode, promise: EventLoopPromise<Void>?) {
    if mode == .all {
      // The framework closes when an answer is handed over; closing at once would drop unwritten bytes.
      isLastRequest = true
      context.whenWritten { $0.close(promise: promise) }
      return watchWrites(context)
    }
    guard mode == .output else { return context.close(mode: mode, promise: promise) }
    let promise = promise ?? context.eventLoop.makePromise()
    // Otherwise the framework would wait until the client closes its half, or until the idle timeout.
    promise.futureResult.assumeIsolated().whenComplete { _ in
      guard context.channel.isActive, self.timers.linger == nil else { return }
      self.timers.linger = context.eventLoop.assumeIsolated().scheduleTask(in: Self.lingering) {
        context.close(promise: nil)
      }
    }
    context.close(mode: mode, promise: promise)
  }

  func channelInactive(context: ChannelHandlerContext) {
    timers.cancel()
    context.fireChannelInactive()
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    if let error = error as? HTTPParserError { parserError = error }
    context.fireErrorCaught(error)
  }

  func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
    switch unwrapOutboundIn(data) {
    case .head(let head):
      isWritingResponse = true
      if let parserError, head.status == .badRequest, head.headerFields[.contentType] == nil {
        write(Self.refusal(for: parserError), context: context)
        promise?.succeed()
        return
      }
      if isLastRequest, openRequests == 1, head.headerFields[.connection] == nil, head.status.kind != .informational {
        var last = head
        last.headerFields[.connection] = "close"
        return context.write(wrapOutboundOut(.head(last)), promise: promise)
      }
    case .body: break
    case .end:
      isWritingResponse = false
      openRequests -= 1
      endedResponses += 1
    }
    context.write(data, promise: promise)
  }

  /// Answers 408 and closes the connection, unless the body has arrived.
  /// An answer that is already being written, such as an early refusal, is not interrupted.
  private func bodyIsLate(context: ChannelHandlerContext) {
    timers.body = nil
    guard isReadingBody else { return }
    if openRequests == 1, !isWritingResponse {
      write(Refusal(.requestTimeout, "the body did not arrive within \(limits.bodyTimeout)"), context: context)
      context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: nil)
    }
    context.close(promise: nil)
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
      if self.openRequests > 0, self.unwrittenBytes(context) == 0 {
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

  /// Writes the head and body of a problem document, without the end of the answer.
  private func write(_ refusal: Refusal, context: ChannelHandlerContext) {
    let requestID = RequestIdentity.requestID(of: fields)
    let problem = Problem(refusal: refusal, requestID: requestID)
    let document = problem.document
    var head = HTTPResponse(status: refusal.code.answer.status, headerFields: problem.headers)
    head.headerFields[.connection] = "close"
    head.headerFields[.contentLength] = String(document.count)
    head.headerFields[.requestID] = requestID
    context.write(wrapOutboundOut(.head(head)), promise: nil)
    context.write(wrapOutboundOut(.body(context.channel.allocator.buffer(bytes: document))), promise: nil)
  }

  private static func refusal(for error: HTTPParserError) -> Refusal {
    error == .headerOverflow
      ? Refusal(.headersTooLarge, "the request line and header fields are larger than the server accepts")
      : Refusal(.malformedRequest, "the request is not well-formed HTTP")
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
