import DequeModule
import HTTPTypes
import NIOCore

/// One HTTP/1.1 connection: takes its requests one at a time, and writes their answers.
///
/// The application begins a request that has arrived whole in one read, or of which the head has. What it cannot answer
/// at once is handed to the connection's task. The rest of a body is read only when the task asks for it, so only after
/// the caller is admitted. `Expect: 100-continue` is answered at that moment too. Bodies take
/// from a `ByteBudget` that all connections share. What arrives while a request is handled waits; while parts wait the
/// connection is not read. `ConnectionLife` has the limits of time, and ends the connection.
///
/// States: `idle` → `collecting` → `answering` → `idle` for a whole request; `collecting` → `streaming` → `idle` for
/// one in parts, with `discarding` in between if it is answered before its body has arrived; `closed` from any state.
final class HTTP1Connection: ChannelDuplexHandler {
  typealias InboundIn = ByteBuffer
  typealias OutboundIn = ByteBuffer
  typealias OutboundOut = ByteBuffer

  /// What a connection may hold and for how long.
  struct Limits {
    /// The most bytes of a body that is handed over whole.
    let wholeBodySize: Int
    /// The time for a request's body to arrive.
    let bodyTimeout: Duration
    /// The longest refused body that is read to keep the connection. Larger than any route accepts.
    let maximumDiscard: Int
  }

  /// Without the request: each part of one looks at it.
  enum State {
    case idle
    /// A request is collected until it has arrived whole.
    case collecting
    /// The whole request is being answered, by the task or without it.
    case answering
    /// The task has the head, and may ask for the body.
    case streaming
    /// The request is answered; the rest of its body is read and dropped.
    case discarding
    case closed
  }

  private enum Event {
    case head(HTTP1Head)
    case body(ByteBuffer)
    case end
    case violation(RuleViolation)
    /// The body cannot be read to its end.
    case error
    case inputClosed
  }

  /// The properties of a request on which the form of its answer depends.
  struct Asker {
    var forwardedFor: String?
    /// Whether the client speaks HTTP/1.0, which has no chunks.
    var isOld = false
  }

  /// What is known of the bytes that arrive, whether their request waits or not.
  private struct Arrival {
    /// Whether the client has offered another protocol: what follows the request is not read.
    var isOffered = false
    var bodyBytes = 0
    var isReadHeld = false
  }

  /// The most unanswered requests of a connection; the answer to the last one closes it.
  ///
  /// A received buffer is taken apart at once: without a limit 256 KiB of the shortest requests would take many times as
  /// much memory.
  private static let maximumPipelined = 128

  let limits: Limits
  let application: any Application
  let connection: ClientConnection
  let life: ConnectionLife
  private var parser: HTTP1Parser
  /// The bytes that are not parsed: a part of a head, or of a line of a chunked body.
  private var received = ByteBuffer()
  private var isParsing = false
  var state = State.idle
  /// The request that is being collected, to be handed over whole; nil if there is none.
  var arriving: (head: HTTP1Head, body: ByteBuffer)?
  private var arrival = Arrival()
  private var waiting = Deque<Event>()
  var handover = Handover()
  /// The answer to the request that the task handles.
  private var pending: PendingAnswer?
  var body = ArrivingBody()
  var charge: BodyCharge
  let answers: ByteBudget
  /// That of the request that is being answered.
  var asker = Asker()
  /// The answer that is written in parts, nil for others.
  var parted: PartedAnswer?
  var bodyTimer: Scheduled<Void>?
  /// Whether the application begins a request now; what waits is handled afterwards.
  var isBeginning = false
  var context: ChannelHandlerContext?

  init(
    _ connection: ClientConnection, parser: HTTP1Parser, limits: Limits, budgets: ByteBudgets, life: ConnectionLife,
    application: any Application
  ) {
    self.parser = parser
    (self.connection, self.limits, self.life, self.application) = (connection, limits, life, application)
    charge = BodyCharge(budgets.bodies)
    answers = budgets.answers
  }

  func handlerAdded(context: ChannelHandlerContext) {
    self.context = context
    life.attach(context)
    if context.channel.isActive { life.start() }
  }

  func handlerRemoved(context: ChannelHandlerContext) {
    close()
    self.context = nil
  }

  func channelActive(context: ChannelHandlerContext) { life.start() }

  func channelInactive(context: ChannelHandlerContext) { close() }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    var bytes = unwrapInboundIn(data)
    if received.readableBytes == 0 {
      received = bytes
    } else {
      received.discardReadBytes()
      received.writeBuffer(&bytes)
    }
    // Handling a request may make the channel read.
    guard !isParsing else { return }
    isParsing = true
    defer { isParsing = false }
    do throws(RuleViolation) {
      while mayParse, let part = try parser.next(&received) { note(part) }
    } catch {
      if life.isReadingBody { receive(.error) } else { beginLast(error) }
    }
    // Further requests must not be carried out, nor count as open: they could not be answered.
    if !mayParse || received.readableBytes == 0 { received = ByteBuffer() }
  }

  func channelReadComplete(context: ChannelHandlerContext) { stream() }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    // Nothing more can be read or written.
    life.close()
  }

  func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
    switch event {
    case ChannelEvent.inputClosed:
      if mayParse, !life.isReadingBody, received.readableBytes > 0 { beginLast(RuleViolation(fault: .malformed)) }
      receive(.inputClosed)
    case is Eviction: life.evict()
    case is ChannelShouldQuiesceEvent: life.drain()
    default: break
    }
  }

  func read(context: ChannelHandlerContext) {
    guard life.isReadingBody || !arrival.isOffered else { return }
    if mayRead { context.read() } else { arrival.isReadHeld = true }
  }

  func channelWritabilityChanged(context: ChannelHandlerContext) {
    if context.channel.isWritable { parted?.resume() } else { life.watchWrites() }
    resume()
  }

  func close(context: ChannelHandlerContext, mode: CloseMode, promise: EventLoopPromise<Void>?) {
    // Closing at once would drop unwritten bytes.
    if mode == .all { life.close(promise: promise) } else { context.close(mode: mode, promise: promise) }
  }
}

// MARK: - Requests

extension HTTP1Connection {
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

  private var mayParse: Bool {
    if case .closed = state { return false }
    return life.isReadingBody || !life.isLastRequest
  }

  private func note(_ part: HTTP1Parser.Part) {
    switch part {
    case .head(let head): begin(head)
    case .body(let bytes):
      arrival.bodyBytes += bytes.readableBytes
      guard arrival.bodyBytes <= limits.maximumDiscard else { return life.closeNow() }
      receive(.body(bytes))
    case .end:
      life.isReadingBody = false
      receive(.end)
    }
  }

  /// Notes the beginning of a request.
  private func begin(_ head: HTTP1Head) {
    life.requestBegan()
    life.isReadingBody = true
    (arrival.bodyBytes, arrival.isOffered) = (0, head.isOffer)
    if head.isOffer || head.isLast || life.openRequests >= Self.maximumPipelined { life.isLastRequest = true }
    receive(.head(head))
  }

  /// Notes a request that is refused as it arrives: where the next one begins is unknown.
  private func beginLast(_ violation: RuleViolation) {
    life.requestBegan()
    life.isLastRequest = true
    receive(.violation(violation))
  }

  /// Handles an event now, or after those that wait.
  private func receive(_ event: Event) {
    if waiting.isEmpty, canGoOn { handle(event) } else { waiting.append(event) }
  }

  private func handle(_ event: Event) {
    switch (event, state) {
    case (.head(let head), .idle):
      state = .collecting
      arriving = (head, ByteBuffer())
      asker = Asker(forwardedFor: connection.isProxy ? head.fields.forwardedFor : nil, isOld: head.isOld)
    case (.body(let bytes), .collecting):
      let collected = arriving?.body.readableBytes ?? 0
      if collected == 0 { arriving?.body = bytes } else { arriving?.body.writeImmutableBuffer(bytes) }
      if collected + bytes.readableBytes > limits.wholeBodySize { stream() }
    case (.end, .collecting):
      guard let (head, collected) = takeArriving() else { break }
      state = .answering
      let hasRoom = charge.add(collected.readableBytes, of: network(of: head))
      begin(head, hasRoom ? .whole(collected) : .refused)
    case (.body(let bytes), .streaming):
      body.awaitsContinue = false
      guard body.error == nil else { break }
      if body.isWanted, !charge.add(bytes.readableBytes, of: body.network) { return body.fail(BodyCharge.refusal) }
      body.add(bytes)
    case (.end, .streaming):
      stopBodyTimer()
      body.end()
    case (.end, .discarding):
      stopBodyTimer()
      state = .idle
    case (.violation(let violation), .idle): refuse(violation)
    case (.error, .collecting), (.error, .streaming), (.inputClosed, .collecting), (.inputClosed, .streaming):
      fail(RequestFault.malformedBody)
    case (.inputClosed, _), (.error, .discarding): life.close()
    default: break
    }
  }

  /// Returns the request that is being collected as far as it has arrived, and forgets it.
  func takeArriving() -> (head: HTTP1Head, body: ByteBuffer)? {
    var taken: (head: HTTP1Head, body: ByteBuffer)?
    swap(&taken, &arriving)
    return taken
  }

  /// Makes the answer to the request that the task handles now.
  func beginAnswer() -> PendingAnswer {
    let answer = PendingAnswer()
    if case .closed = state { answer.abandon() }
    pending = answer
    return answer
  }

  /// Has the application begin a request, and the task answer it if that takes time.
  func begin(_ head: HTTP1Head, _ body: RequestBody) {
    guard let context else { return }
    let slot = AnswerSlot(requester: NIOLoopBound(self, eventLoop: context.eventLoop), number: 0)
    var exchange = head.exchange(body, on: connection, slot: slot)
    isBeginning = true
    defer { isBeginning = false }
    switch application.begin(&exchange) {
    case .taken: break
    case .later(let work): handover.give(RequestTask(exchange: exchange, work: work))
    case .now(let answer):
      guard case .bytes(let bytes) = answer.body else {
        return handover.give(RequestTask(exchange: exchange) { _ in answer })
      }
      if !self.answer(answer.head, body: bytes, to: 0) {
        let isRead = exchange.method == .get || exchange.method == .head
        let refusal = AnswerWriter.refusal(of: answer.head, isRead: isRead, application)
        _ = self.answer(refusal.head, body: refusal.bytes, to: 0)
      }
    }
  }

  /// Handles waiting events as far as possible, then continues to read.
  func resume() {
    guard !waiting.isEmpty, !isBeginning else { return }
    while canGoOn, let event = waiting.popFirst() { handle(event) }
    // What has not arrived by now comes with another read.
    if waiting.isEmpty { stream() }
    continueReading()
  }

  func continueReading() {
    guard arrival.isReadHeld, mayRead else { return }
    arrival.isReadHeld = false
    context?.read()
  }

  private func close() {
    state = .closed
    arriving = nil
    received = ByteBuffer()
    waiting.removeAll()
    stopBodyTimer()
    life.end()
    charge.release()
    pending?.abandon()
    body.fail(CancellationError())
    parted?.fail()
    parted = nil
    handover.end()
  }
}

// Confined to its event loop; the connection's task calls it there.
@available(*, unavailable)
extension HTTP1Connection: Sendable {}
