import FanfareCore
import HTTPTypes
import HummingbirdCore
import NIOCore
import NIOHTTP1
import NIOHTTPTypes

/// Hands a connection's requests to its task, one at a time.
///
/// A request that arrives whole in one read is handed over whole. That costs one suspension and is the usual case. Of
/// any other request the head is handed over first; its body is read only when the task asks for it, so only after
/// the caller is admitted. `Expect: 100-continue` is answered at that moment too. Bodies take from a `BodyBudget` that
/// all connections share. What arrives while a request is handled waits; while parts wait the connection is not read.
///
/// States: `idle` → `collecting` → `answering` → `idle` for a whole request; `collecting` → `streaming` → `idle` for
/// one in parts, with `discarding` in between if it is answered before its body has arrived; `closed` from any state.
final class RequestAggregator: ChannelDuplexHandler {
  typealias InboundIn = HTTPRequestPart
  typealias OutboundIn = HTTPResponsePart
  typealias OutboundOut = HTTPResponsePart

  /// What the aggregator may hold and for how long.
  struct Limits {
    /// The most bytes of a body that is handed over whole.
    let wholeBodySize: Int
    /// The time for a request's body to arrive.
    let bodyTimeout: Duration
    /// The longest refused body that is read to keep the connection.
    let maximumDiscard: Int
  }

  private enum State {
    case idle
    case collecting(HTTPRequest, ByteBuffer)
    /// The task has the whole request and has not answered yet.
    case answering
    /// The task has the head, and may ask for the body.
    case streaming
    /// The request is answered; the rest of its body is read and dropped.
    case discarding
    case closed
  }

  private enum Event {
    case part(HTTPRequestPart)
    case error(any Error)
    case inputClosed
  }

  /// A shorter body that arrives whole is not counted in the budget, which saves an atomic operation.
  private static let uncountedBytes = 4096

  private let limits: Limits
  private let budget: BodyBudget
  private let connection: ClientConnection
  private var state = State.idle
  private var waiting = CircularBuffer<Event>()
  private var isReadHeld = false
  private var request: Request?
  private var taker: CheckedContinuation<Request?, Never>?
  private var body = ArrivingBody()
  /// The bytes of the budget that the request holds until it is answered.
  private var taken = 0
  /// The bytes of the present request's body that have arrived.
  private var arrived = 0
  /// The network of the present request's client. Not set for a short body that arrived whole.
  private var network = ClientAddress.unknown
  private var bodyTimer: Scheduled<Void>?
  private var context: ChannelHandlerContext?

  init(limits: Limits, budget: BodyBudget, connection: ClientConnection) {
    (self.limits, self.budget, self.connection) = (limits, budget, connection)
  }

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

  /// Gives the next part of the body of request `number`, nil at its end. The first call admits the body.
  func takePart(of number: Int, _ continuation: CheckedContinuation<ByteBuffer?, any Error>) {
    guard case .streaming = state, number == body.number, let context else {
      return continuation.resume(throwing: CancellationError())
    }
    if !body.isWanted { admitBody(context) }
    if let part = body.parts.popFirst() {
      continuation.resume(returning: part)
    } else if let error = body.error {
      continuation.resume(throwing: error)
    } else if body.isEnded {
      continuation.resume(returning: nil)
    } else {
      body.taker = continuation
    }
    continueReading(context)
  }

  /// Writes the head of an answer, or a part of its body.
  func write(_ part: HTTPResponsePart) {
    guard let context else { return }
    if case .streaming = state, case .head(var head) = part, closesConnection {
      head.headerFields[.connection] = "close"
      return context.write(wrapOutboundOut(.head(head)), promise: nil)
    }
    context.write(wrapOutboundOut(part), promise: nil)
  }

  /// Ends the answer to the request of `next()`.
  func finish(trailers: HTTPFields?) {
    guard let context else { return }
    context.writeAndFlush(wrapOutboundOut(.end(trailers)), promise: nil)
    release()
    switch state {
    case .streaming where !body.isEnded:
      state = .discarding
      body.parts.removeAll()
      startBodyTimer(context)
      continueReading(context)
    case .answering, .streaming:
      state = .idle
      resume(context)
    case .idle, .collecting, .discarding, .closed: break
    }
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

  func channelReadComplete(context: ChannelHandlerContext) {
    stream()
    context.fireChannelReadComplete()
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    // Any other error is one of the connection: nothing more can be read or written.
    guard error is HTTPParserError || error is RuleViolation else { return context.close(promise: nil) }
    receive(.error(error), context)
  }

  func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
    if let change = event as? ChannelEvent, change == .inputClosed { receive(.inputClosed, context) }
  }

  func read(context: ChannelHandlerContext) {
    if mayRead { context.read() } else { isReadHeld = true }
  }

  func channelWritabilityChanged(context: ChannelHandlerContext) {
    context.fireChannelWritabilityChanged()
    resume(context)
  }

  private var mayRead: Bool {
    if case .streaming = state, !body.isEnded { return body.isWanted && body.parts.isEmpty && waiting.isEmpty }
    return waiting.isEmpty
  }

  /// Whether the next event can be handled now.
  /// A client that does not read its answers gets no further ones.
  private var canGoOn: Bool {
    switch state {
    case .idle: context?.channel.isWritable == true
    case .collecting, .discarding, .closed: true
    case .streaming: !body.isEnded
    case .answering: false
    }
  }

  /// Whether the answer to the request in parts must be the last of the connection.
  private var closesConnection: Bool {
    guard !body.isEnded else { return false }
    // RFC 9110 §10.1.1: a client that gets its answer instead of `100 Continue` may send the body or not.
    return body.isBroken || body.awaitsContinue || body.declaredLength ?? 0 > limits.maximumDiscard
  }

  /// Handles an event now, or after those that wait.
  private func receive(_ event: Event, _ context: ChannelHandlerContext) {
    if waiting.isEmpty, canGoOn { handle(event, context) } else { waiting.append(event) }
  }

  private func handle(_ event: Event, _ context: ChannelHandlerContext) {
    switch event {
    case .part(let part): take(part, context)
    case .error(let error): fail(error, context)
    case .inputClosed:
      switch state {
      case .idle: context.whenWritten { $0.close(promise: nil) }
      case .collecting, .streaming: fail(HTTPParserError.invalidEOFState, context)
      case .answering, .discarding, .closed: context.close(promise: nil)
      }
    }
  }

  private func take(_ part: HTTPRequestPart, _ context: ChannelHandlerContext) {
    switch (state, part) {
    case (.idle, .head(let head)): state = .collecting(head, ByteBuffer())
    case (.collecting(let head, var collected), .body(let bytes)):
      if collected.readableBytes == 0 { collected = bytes } else { collected.writeImmutableBuffer(bytes) }
      state = .collecting(head, collected)
      if collected.readableBytes > limits.wholeBodySize { stream() }
    case (.collecting(let head, let collected), .end):
      state = .answering
      give(Request(head: head, body: admitted(collected, of: head)))
    case (.streaming, .body(let bytes)):
      body.awaitsContinue = false
      guard body.error == nil else { break }
      if body.isWanted, !charge(bytes.readableBytes) { return body.fail(BodyBudget.refusal) }
      body.add(bytes)
    case (.streaming, .end):
      stopBodyTimer()
      body.end()
    case (.discarding, .end):
      stopBodyTimer()
      state = .idle
    default: break
    }
  }

  /// Hands over the head of a request whose body has not arrived.
  private func stream() {
    guard case .collecting(let head, let collected) = state, let context else { return }
    state = .streaming
    network = connection.client(of: head.headerFields).network
    body = ArrivingBody(head: head, collected: collected, number: body.number + 1)
    let stream = BodyStream(
      requests: NIOLoopBound(self, eventLoop: context.eventLoop), eventLoop: context.eventLoop, number: body.number)
    give(Request(head: head, body: RequestBody(asyncSequence: stream)))
  }

  private func admitBody(_ context: ChannelHandlerContext) {
    body.isWanted = true
    if !charge(body.parts.reduce(0) { $0 + $1.readableBytes }) { body.fail(BodyBudget.refusal) }
    guard !body.isEnded, body.error == nil else { return }
    if body.awaitsContinue {
      body.awaitsContinue = false
      context.writeAndFlush(wrapOutboundOut(.head(HTTPResponse(status: .continue))), promise: nil)
    }
    startBodyTimer(context)
  }

  /// The body of a request that arrived whole, or one that fails if the budget is used up.
  private func admitted(_ collected: ByteBuffer, of head: HTTPRequest) -> RequestBody {
    if collected.readableBytes > Self.uncountedBytes {
      network = connection.client(of: head.headerFields).network
    }
    guard !charge(collected.readableBytes) else {
      return RequestBody(buffer: collected)
    }
    return RequestBody(asyncSequence: RefusedBody())
  }

  /// Takes bytes of the request's body from the budget. Its first bytes are free, so that callers with large bodies
  /// cannot keep out ordinary requests.
  private func charge(_ bytes: Int) -> Bool {
    arrived += bytes
    let due = arrived - Self.uncountedBytes - taken
    guard due > 0 else { return true }
    guard budget.take(due, of: network) else { return false }
    taken += due
    return true
  }

  private func release() {
    if taken > 0 { budget.release(taken, of: network) }
    (taken, arrived) = (0, 0)
  }

  private func fail(_ error: any Error, _ context: ChannelHandlerContext) {
    switch state {
    case .idle: refuse(error, context)
    case .collecting, .streaming:
      stream()
      body.isBroken = true
      body.fail(error)
    case .discarding: context.close(promise: nil)
    case .answering, .closed: break
    }
  }

  /// Answers malformed HTTP, where there is no request for the task, and ends the connection.
  private func refuse(_ error: any Error, _ context: ChannelHandlerContext) {
    state = .closed
    let violation = error as? RuleViolation ?? RuleViolation(error as? HTTPParserError ?? .unknown)
    let problem = Problem(refusal: violation.refusal, requestID: violation.requestID)
    let document = problem.document
    var head = HTTPResponse(status: violation.refusal.code.answer.status, headerFields: problem.headers)
    head.headerFields[.connection] = "close"
    head.headerFields[.contentLength] = String(document.count)
    head.headerFields[.requestID] = violation.requestID
    context.write(wrapOutboundOut(.head(head)), promise: nil)
    context.write(wrapOutboundOut(.body(context.channel.allocator.buffer(bytes: document))), promise: nil)
    context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: nil)
    endTask()
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
    // The rest of the request arrives with a later read.
    if waiting.isEmpty { stream() }
    continueReading(context)
  }

  private func continueReading(_ context: ChannelHandlerContext) {
    guard isReadHeld, mayRead else { return }
    isReadHeld = false
    context.read()
  }

  private func startBodyTimer(_ context: ChannelHandlerContext) {
    guard bodyTimer == nil else { return }
    bodyTimer = context.eventLoop.assumeIsolated().scheduleTask(in: TimeAmount(limits.bodyTimeout)) {
      self.bodyTimer = nil
      self.fail(
        Refusal(.requestTimeout, "the body did not arrive within \(self.limits.bodyTimeout)"), context)
    }
  }

  private func stopBodyTimer() {
    bodyTimer?.cancel()
    bodyTimer = nil
  }

  private func close() {
    state = .closed
    waiting.removeAll()
    stopBodyTimer()
    release()
    body.fail(CancellationError())
    endTask()
  }

  private func endTask() {
    taker?.resume(returning: nil)
    taker = nil
  }
}

// Confined to its event loop; the connection's task calls it there.
@available(*, unavailable)
extension RequestAggregator: Sendable {}
