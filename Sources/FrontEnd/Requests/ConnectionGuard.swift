import FanfareCore
import HTTPTypes
import Hummingbird
import NIOCore
import NIOHTTP1
import NIOHTTPTypes

/// Watches over one connection below the framework, on its event loop: a body that does not arrive in time or does not
/// end costs the connection, and so do answers that are not read; `Expect: 100-continue` is answered, what the
/// framework answers to malformed HTTP becomes a problem document, and a connection that is to be closed is, behind the
/// answers that were given before.
final class ConnectionGuard: ChannelDuplexHandler, RemovableChannelHandler {
  typealias InboundIn = HTTPRequestPart
  typealias InboundOut = HTTPRequestPart
  typealias OutboundIn = HTTPResponsePart
  typealias OutboundOut = HTTPResponsePart

  /// How long a client has to read its last answer and close its half (RFC 9112 §9.6).
  private static let lingering = TimeAmount.seconds(2)

  /// How many requests of a connection may wait for their answers. What comes in one go is taken apart as a whole:
  /// without a limit a quarter of a megabyte of the shortest requests would take many times as much memory.
  private static let maximumPipelined = 128

  private let bodyTimeout: TimeAmount
  private let writeTimeout: TimeAmount
  private let drainTimeout: TimeAmount
  private let maximumBodyBytes: Int
  private var isReadingBody = false
  /// What the request came with whose body is read.
  private var fields: HTTPFields = [:]
  /// Whether there is no other answer than to the request read last: the client wants none, or the connection is to be
  /// closed.
  private var isLastRequest = false
  /// Whether the client has offered to speak something else next. The parser takes nothing for HTTP any more from then
  /// on, and would keep whatever comes.
  private var isOffered = false
  private var closing: Scheduled<Void>?
  private var bodyBytes = 0
  private var bodyDeadline: Scheduled<Void>?
  /// Requests whose response has not ended.
  private var openRequests = 0
  private var isWritingResponse = false
  /// How many responses have ended. They need not have been written.
  private var endedResponses = 0
  private var writeWatch: Scheduled<Void>?
  private var drainDeadline: Scheduled<Void>?
  private var parserError: HTTPParserError?

  /// `writeTimeout`: for how long a client may read nothing of what is waiting to be written. `drainTimeout`: how long
  /// the client has to read its answers when the server shuts down. `maximumBodyBytes` is beyond what any route takes:
  /// it only limits how much of a refused body is read to keep the connection.
  init(bodyTimeout: Duration, writeTimeout: Duration, drainTimeout: Duration, maximumBodyBytes: Int) {
    self.bodyTimeout = TimeAmount(bodyTimeout)
    self.writeTimeout = TimeAmount(writeTimeout)
    self.drainTimeout = TimeAmount(drainTimeout)
    self.maximumBodyBytes = maximumBodyBytes
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    // What the client has sent all the same must not be done, nor count as under way: it could not be answered.
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
      // Said in the one way that is understood further on.
      if isLastRequest {
        var last = head
        last.headerFields[.connection] = "close"
        data = wrapInboundOut(.head(last))
      }
      fields = head.headerFields
      // RFC 9110 §10.1.1. While an earlier response is under way the client has to do with its own timeout.
      if openRequests == 1, head.headerFields[.expect]?.lowercased() == "100-continue" {
        context.writeAndFlush(wrapOutboundOut(.head(HTTPResponse(status: .continue))), promise: nil)
      }
    case .body(let bytes):
      bodyBytes += bytes.readableBytes
      guard bodyBytes <= maximumBodyBytes else { return context.close(promise: nil) }
    case .end:
      isReadingBody = false
      fields = [:]
      bodyDeadline?.cancel()
      bodyDeadline = nil
    }
    context.fireChannelRead(data)
  }

  func channelReadComplete(context: ChannelHandlerContext) {
    // Most requests arrive whole: only those that do not need a timer.
    if isReadingBody, bodyDeadline == nil {
      bodyDeadline = context.eventLoop.assumeIsolated().scheduleTask(in: bodyTimeout) {
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
      // A client that goes on asking must not keep the server from its end.
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
      // At once it would drop what is not written yet. The framework takes a request for answered when its answer has
      // been handed over.
      isLastRequest = true
      context.whenWritten { $0.close(promise: promise) }
      return watchWrites(context)
    }
    guard mode == .output else { return context.close(mode: mode, promise: promise) }
    let promise = promise ?? context.eventLoop.makePromise()
    // The framework would wait until the client closes its half, or the connection counts as idle.
    promise.futureResult.assumeIsolated().whenComplete { _ in
      guard context.channel.isActive, self.closing == nil else { return }
      self.closing = context.eventLoop.assumeIsolated().scheduleTask(in: Self.lingering) { context.close(promise: nil) }
    }
    context.close(mode: mode, promise: promise)
  }

  func channelInactive(context: ChannelHandlerContext) {
    bodyDeadline?.cancel()
    bodyDeadline = nil
    closing?.cancel()
    closing = nil
    writeWatch?.cancel()
    writeWatch = nil
    drainDeadline?.cancel()
    drainDeadline = nil
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

  /// Only what is still coming in is late; a response that is already under way (a refusal, given early) need not wait
  /// for it.
  private func bodyIsLate(context: ChannelHandlerContext) {
    bodyDeadline = nil
    guard isReadingBody else { return }
    if openRequests == 1, !isWritingResponse {
      write(Refusal(.requestTimeout, "the body did not arrive in time"), context: context)
      context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: nil)
    }
    context.close(promise: nil)
  }

  /// Closes the connection when nothing of what waits is written within `writeTimeout`. Nothing is added without an
  /// answer's end: where two looks see the same, nothing was taken between them.
  private func watchWrites(_ context: ChannelHandlerContext) {
    guard context.channel.isActive, writeWatch == nil else { return }
    let seen = (endedResponses, unwrittenBytes(context))
    guard seen.1 > 0 else { return }
    writeWatch = context.eventLoop.assumeIsolated().scheduleTask(in: writeTimeout) {
      self.writeWatch = nil
      if seen == (self.endedResponses, self.unwrittenBytes(context)) {
        context.close(promise: nil)
      } else {
        self.watchWrites(context)
      }
    }
  }

  /// Closes the connection when its client has had its time to read; what is still being worked on is waited for.
  private func limitDrain(_ context: ChannelHandlerContext) {
    guard context.channel.isActive, drainDeadline == nil else { return }
    drainDeadline = context.eventLoop.assumeIsolated().scheduleTask(in: drainTimeout) {
      self.drainDeadline = nil
      if self.openRequests > 0, self.unwrittenBytes(context) == 0 {
        self.limitDrain(context)
      } else {
        context.close(promise: nil)
      }
    }
  }

  /// How much has been handed over to be written, and the system has not taken.
  private func unwrittenBytes(_ context: ChannelHandlerContext) -> Int {
    // It fails for a connection that has gone, and nothing will be written to that.
    (try? context.channel.syncOptions?.getOption(.bufferedWritableBytes)) ?? 0
  }

  /// Writes a problem's head and body, not its end.
  private func write(_ refusal: Refusal, context: ChannelHandlerContext) {
    let requestID = RequestIdentity.requestID(of: fields)
    let problem = Problem(refusal: refusal, requestID: requestID)
    let document = problem.document
    var head = HTTPResponse(status: refusal.code.appearance.status, headerFields: problem.headers)
    head.headerFields[.connection] = "close"
    head.headerFields[.contentLength] = String(document.count)
    head.headerFields[.requestID] = requestID
    context.write(wrapOutboundOut(.head(head)), promise: nil)
    context.write(wrapOutboundOut(.body(context.channel.allocator.buffer(bytes: document))), promise: nil)
  }

  private static func refusal(for error: HTTPParserError) -> Refusal {
    error == .headerOverflow
      ? Refusal(.headersTooLarge, "the request line and header fields are larger than the server takes")
      : Refusal(.malformedRequest, "the request is not well-formed HTTP")
  }
}

extension HTTPRequest {
  /// The options of `Connection`, which are the same in any case (RFC 9110 §7.6.1).
  fileprivate var connectionOptions: [String] {
    guard let options = headerFields[.connection] else { return [] }
    return options.split(separator: ",").map { $0.lowercased().filter { !$0.isWhitespace } }
  }
}

// The handler and its timers stay on one event loop.
@available(*, unavailable)
extension ConnectionGuard: Sendable {}
