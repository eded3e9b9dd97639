import HTTPTypes
import HummingbirdCore
import NIOCore
import NIOHTTP1
import NIOHTTPTypes

/// Collects a connection's small requests and hands each to the connection's task as a whole.
///
/// That costs one suspension per request instead of one or two per part. Requests with large bodies, or bodies of
/// unknown length, pass as parts, so that a refused body need not be read.
///
/// One request at a time is handled, on either way. Parts that arrive meanwhile wait, and while parts wait the
/// connection is not read.
///
/// States: `idle` → `collecting` → `answering` → `idle` for a whole request; `idle` → `passing` → `idle` for one in
/// parts, which may be answered before it is read to its end; `closed` from any state.
final class RequestAggregator: ChannelDuplexHandler {
  typealias InboundIn = HTTPRequestPart
  typealias InboundOut = HTTPRequestPart
  typealias OutboundIn = HTTPResponsePart
  typealias OutboundOut = HTTPResponsePart

  private enum State {
    case idle
    case collecting(HTTPRequest, ByteBuffer)
    /// The task has the request and has not answered yet.
    case answering
    /// The request passes as parts.
    case passing(isRead: Bool, isAnswered: Bool)
    case closed
  }

  private enum Event {
    case part(HTTPRequestPart)
    case error(any Error)
    case inputClosed
  }

  private let maximumBodySize: Int
  private var state = State.idle
  private var waiting = CircularBuffer<Event>()
  private var isReadHeld = false
  private var request: Request?
  private var taker: CheckedContinuation<Request?, Never>?
  private var context: ChannelHandlerContext?

  /// Collects requests whose bodies have at most `maximumBodySize` bytes.
  init(maximumBodySize: Int) { self.maximumBodySize = maximumBodySize }

  /// Returns the next request, or nil when the connection is closed.
  /// Call it on the event loop, after the previous request was answered.
  func next() async -> Request? {
    if case .closed = state { return nil }
    if let request {
      self.request = nil
      return request
    }
    return await withCheckedContinuation { taker = $0 }
  }

  /// Writes the head of an answer, or a part of its body.
  func write(_ part: HTTPResponsePart) { context?.write(wrapOutboundOut(part), promise: nil) }

  /// Ends the answer to the request of `next()`; `isLast`: the client wants no further answer.
  func finish(trailers: HTTPFields?, isLast: Bool) {
    guard let context else { return }
    context.writeAndFlush(wrapOutboundOut(.end(trailers)), promise: nil)
    if isLast {
      // Further requests must not be carried out: they could not be answered.
      waiting.removeAll()
      state = .closed
      context.whenWritten { $0.close(mode: .output, promise: nil) }
    }
    guard case .answering = state else { return }
    state = .idle
    resume(context)
  }

  func handlerAdded(context: ChannelHandlerContext) { self.context = context }

  func handlerRemoved(context: ChannelHandlerContext) {
    self.context = nil
    close()
  }

  func channelInactive(context: ChannelHandlerContext) {
    close()
    context.fireChannelInactive()
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    receive(.part(unwrapInboundIn(data)), context)
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) { receive(.error(error), context) }

  func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
    guard let change = event as? ChannelEvent, change == .inputClosed else {
      return context.fireUserInboundEventTriggered(event)
    }
    receive(.inputClosed, context)
  }

  func read(context: ChannelHandlerContext) {
    if waiting.isEmpty { context.read() } else { isReadHeld = true }
  }

  func channelWritabilityChanged(context: ChannelHandlerContext) {
    context.fireChannelWritabilityChanged()
    resume(context)
  }

  func close(context: ChannelHandlerContext, mode: CloseMode, promise: EventLoopPromise<Void>?) {
    // If the client has closed its half, closing ours closes the connection and would drop unwritten answers.
    guard mode == .output else { return context.close(mode: mode, promise: promise) }
    context.whenWritten { $0.close(mode: mode, promise: promise) }
  }

  /// Receives the answers to requests that passed as parts.
  func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
    let isEnd = if case .end = unwrapOutboundIn(data) { true } else { false }
    context.write(data, promise: promise)
    guard isEnd, case .passing(let isRead, _) = state else { return }
    state = isRead ? .idle : .passing(isRead: false, isAnswered: true)
    if isRead { resume(context) }
  }

  /// Whether the next part can be handled now.
  /// A client that does not read its answers gets no further ones.
  private var canGoOn: Bool {
    switch state {
    case .idle: context?.channel.isWritable == true
    case .collecting, .passing(isRead: false, _), .closed: true
    case .answering, .passing: false
    }
  }

  /// Handles an event now, or after those that wait.
  private func receive(_ event: Event, _ context: ChannelHandlerContext) {
    if waiting.isEmpty, canGoOn { handle(event, context) } else { waiting.append(event) }
  }

  private func handle(_ event: Event, _ context: ChannelHandlerContext) {
    switch event {
    case .part(let part): take(part, context)
    case .error(let error): context.fireErrorCaught(error)
    // The framework closes the connection at the end of input, so it must not learn of it before all is written.
    case .inputClosed: context.whenWritten { $0.fireUserInboundEventTriggered(ChannelEvent.inputClosed) }
    }
  }

  private func take(_ part: HTTPRequestPart, _ context: ChannelHandlerContext) {
    switch (state, part) {
    case (.closed, _): break
    case (.idle, .head(let head)) where isSmall(head): state = .collecting(head, ByteBuffer())
    case (.collecting(let head, var body), .body(let bytes)):
      if body.readableBytes == 0 { body = bytes } else { body.writeImmutableBuffer(bytes) }
      state = .collecting(head, body)
    case (.collecting(let head, let body), .end):
      state = .answering
      give(Request(head: head, body: RequestBody(buffer: body)))
    case (.idle, .head): pass(part, .passing(isRead: false, isAnswered: false), context)
    case (.passing(_, let isAnswered), .end):
      pass(part, isAnswered ? .idle : .passing(isRead: true, isAnswered: false), context)
    default: context.fireChannelRead(wrapInboundOut(part))
    }
  }

  private func pass(_ part: HTTPRequestPart, _ state: State, _ context: ChannelHandlerContext) {
    self.state = state
    context.fireChannelRead(wrapInboundOut(part))
  }

  private func give(_ request: Request) {
    guard let taker else { return self.request = request }
    self.taker = nil
    taker.resume(returning: request)
  }

  /// Handles waiting events as far as possible, then continues to read.
  private func resume(_ context: ChannelHandlerContext) {
    guard !waiting.isEmpty else { return }
    while canGoOn, let event = waiting.popFirst() { handle(event, context) }
    context.fireChannelReadComplete()
    guard waiting.isEmpty, isReadHeld else { return }
    isReadHeld = false
    context.read()
  }

  private func isSmall(_ head: HTTPRequest) -> Bool {
    guard let field = head.headerFields[.contentLength] else { return head.headerFields[.transferEncoding] == nil }
    return Int(field).map { $0 <= maximumBodySize } ?? false
  }

  private func close() {
    state = .closed
    waiting.removeAll()
    taker?.resume(returning: nil)
    taker = nil
  }
}

// Confined to its event loop; the connection's task calls it there.
@available(*, unavailable)
extension RequestAggregator: Sendable {}
