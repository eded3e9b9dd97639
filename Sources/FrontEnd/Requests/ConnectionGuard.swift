import FanfareCore
import HTTPTypes
import Hummingbird
import NIOCore
import NIOHTTP1
import NIOHTTPTypes

/// Watches over one connection below the framework, on its event loop: a body that does not arrive in time or does not end costs the
/// connection, `Expect: 100-continue` is answered, and what the framework answers to malformed HTTP becomes a problem document.
final class ConnectionGuard: ChannelDuplexHandler, RemovableChannelHandler {
  typealias InboundIn = HTTPRequestPart
  typealias InboundOut = HTTPRequestPart
  typealias OutboundIn = HTTPResponsePart
  typealias OutboundOut = HTTPResponsePart

  private let bodyTimeout: TimeAmount
  private let maximumBodyBytes: Int
  private var isReadingBody = false
  private var bodyBytes = 0
  private var bodyDeadline: Scheduled<Void>?
  /// Requests whose response has not ended.
  private var openRequests = 0
  private var isWritingResponse = false
  private var parserError: HTTPParserError?

  /// `maximumBodyBytes` is beyond what any route takes: it only limits how much of a refused body is read to keep the connection.
  init(bodyTimeout: Duration, maximumBodyBytes: Int) {
    self.bodyTimeout = TimeAmount(bodyTimeout)
    self.maximumBodyBytes = maximumBodyBytes
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    switch unwrapInboundIn(data) {
    case .head(let head):
      openRequests += 1
      isReadingBody = true
      bodyBytes = 0
      // RFC 9110 §10.1.1. While an earlier response is under way the client has to do with its own timeout.
      if openRequests == 1, head.headerFields[.expect]?.lowercased() == "100-continue" {
        context.writeAndFlush(wrapOutboundOut(.head(HTTPResponse(status: .continue))), promise: nil)
      }
    case .body(let bytes):
      bodyBytes += bytes.readableBytes
      guard bodyBytes <= maximumBodyBytes else { return context.close(promise: nil) }
    case .end:
      isReadingBody = false
      bodyDeadline?.cancel()
      bodyDeadline = nil
    }
    context.fireChannelRead(data)
  }

  func channelReadComplete(context: ChannelHandlerContext) {
    // Most requests arrive whole: only those that do not need a timer.
    if isReadingBody, bodyDeadline == nil {
      bodyDeadline = context.eventLoop.assumeIsolated().scheduleTask(in: bodyTimeout) { self.bodyIsLate(context: context) }
    }
    context.fireChannelReadComplete()
  }

  func channelInactive(context: ChannelHandlerContext) {
    bodyDeadline?.cancel()
    bodyDeadline = nil
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
    case .body: break
    case .end:
      isWritingResponse = false
      openRequests -= 1
    }
    context.write(data, promise: promise)
  }

  /// Only what is still coming in is late; a response that is already under way (a refusal, given early) need not wait for it.
  private func bodyIsLate(context: ChannelHandlerContext) {
    bodyDeadline = nil
    guard isReadingBody else { return }
    if openRequests == 1, !isWritingResponse {
      write(Refusal(.requestTimeout, "the body did not arrive in time"), context: context)
      context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: nil)
    }
    context.close(promise: nil)
  }

  /// Writes a problem's head and body, not its end.
  private func write(_ refusal: Refusal, context: ChannelHandlerContext) {
    let requestID = RequestIdentity.requestID(of: [:])
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

// The handler and its timer stay on one event loop.
@available(*, unavailable)
extension ConnectionGuard: Sendable {}
