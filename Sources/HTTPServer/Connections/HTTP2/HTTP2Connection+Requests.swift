import DequeModule
import HTTP2
import HTTPTypes
import NIOCore

/// Where requests wait for the connection's task, or the task for a request. Confined to the event loop.
struct StreamHandover {
  /// While answers occupy more bytes, no further request is handed over.
  private static let maximumWaitingBytes = 1 << 18
  /// The bytes that the answer of a request is reckoned with while the task handles it.
  private static let bytesPerRunning = maximumWaitingBytes / HTTP2Connection.maximumStreams

  /// The bytes of answers that the client has not yet accepted.
  var waitingBytes = 0
  private var requests = Deque<(task: RequestTask, streamID: Int32)>()
  /// The requests that the task has not answered, those of reset streams included.
  private var running = 0
  /// What the bodies of requests are charged that are still handled, but whose streams were reset.
  private var charges: [Int32: BodyCharge] = [:]
  private var taker: CheckedContinuation<Void, Never>?
  private(set) var isEnded = false

  mutating func give(_ task: RequestTask, _ streamID: Int32) {
    requests.append((task, streamID))
    resume()
  }

  /// Returns the next request if one more may be handled: the client reads its answers, and few are being handled.
  mutating func take() -> (task: RequestTask, streamID: Int32)? {
    guard mayTake, let next = requests.popFirst() else { return nil }
    running += 1
    return next
  }

  /// Notes that the task waits.
  mutating func wait(_ taker: CheckedContinuation<Void, Never>) { self.taker = taker }

  /// Notes that the task has answered a request.
  mutating func finished() {
    running -= 1
    resume()
  }

  /// Lets the task look again if it may take a request, or must end.
  mutating func resume() {
    guard let taker, isEnded || (mayTake && !requests.isEmpty) else { return }
    self.taker = nil
    taker.resume()
  }

  /// Keeps the charge of a request until `release`.
  mutating func keep(_ charge: BodyCharge?, of streamID: Int32) { if let charge { charges[streamID] = charge } }

  /// Releases the charge of a request that is no longer handled.
  mutating func release(_ streamID: Int32) {
    guard !charges.isEmpty, var charge = charges.removeValue(forKey: streamID) else { return }
    charge.release()
  }

  mutating func end() {
    isEnded = true
    requests.removeAll()
    for id in Array(charges.keys) { release(id) }
    resume()
  }

  /// Whether one more may be handled.
  var mayTake: Bool { waitingBytes + running * Self.bytesPerRunning < Self.maximumWaitingBytes }
}

extension HTTP2Connection {
  /// Returns the next request, or nil when the connection is closed. Call it on the event loop.
  func next() async -> (task: RequestTask, streamID: Int32, answer: PendingAnswer)? {
    while !handover.isEnded {
      while let next = handover.take() {
        if let stream = streams[next.streamID] {
          stream.isRunning = true
          let answer = PendingAnswer()
          stream.pending = answer
          return (next.task, next.streamID, answer)
        }
        // Nobody waits for its answer.
        handover.finished()
      }
      await withCheckedContinuation { handover.wait($0) }
    }
    return nil
  }

  /// Gives up a request of `next()` that cannot be answered.
  func abandon(_ streamID: Int32) {
    handover.finished()
    // Fails only if the session has ended.
    if endRun(streamID) != nil { try? session?.reset(streamID: streamID, code: .internalError) }
    scheduleFlush()
  }

  /// Notes that a request is no longer handled. Returns its stream, nil if that was reset.
  func endRun(_ streamID: Int32) -> HTTP2Stream? {
    let stream = streams[streamID]
    if let stream { (stream.isRunning, stream.pending) = (false, nil) } else { handover.release(streamID) }
    return stream
  }

  /// Has a request begun that has arrived whole.
  func handOverWhole(_ stream: HTTP2Stream) {
    stream.isHandedOver = true
    life.requestBegan()
    let body = stream.collected
    let hasRoom = stream.charge.add(body.readableBytes, of: network(of: stream))
    begin(stream, hasRoom ? .whole(body) : .refused, hasBody: body.readableBytes > 0)
    consume(stream)
  }

  /// Hands over requests whose bodies cannot arrive soon; waits a little for the others, because clients with many
  /// requests send the heads first, and a whole request costs less.
  func handOverIncomplete() {
    // Not `removeAll(where:)`: a head that is refused here is answered, which looks at `arrival`.
    arrival.incomplete = arrival.incomplete.filter { id in
      guard let stream = streams[id], !stream.isHandedOver else { return false }
      guard stream.head.expectsContinue || stream.head.declaredLength ?? 0 > Self.firstWindow else { return true }
      handOverInParts(stream)
      return false
    }
    guard !arrival.incomplete.isEmpty, arrival.timer == nil, let context else { return }
    arrival.timer = context.eventLoop.assumeIsolated().scheduleTask(in: Self.bodyDelay) {
      self.arrival.timer = nil
      let late = self.arrival.incomplete
      self.arrival.incomplete.removeAll(keepingCapacity: true)
      for id in late {
        if let stream = self.streams[id], !stream.isHandedOver { self.handOverInParts(stream) }
      }
    }
  }

  /// Hands over a request of which only the head has arrived.
  func handOverInParts(_ stream: HTTP2Stream) {
    stream.isHandedOver = true
    life.requestBegan()
    guard let context else { return }
    stream.body = ArrivingBody(
      declaredLength: stream.head.declaredLength, expectsContinue: stream.head.expectsContinue,
      collected: stream.collected, number: Int(stream.id), network: network(of: stream))
    stream.collected = ByteBuffer()
    let source = NIOLoopBound<any BodySource>(self, eventLoop: context.eventLoop)
    let body = BodyStream(source: source, eventLoop: context.eventLoop, number: Int(stream.id))
    begin(stream, .inParts(body), hasBody: true)
  }

  /// Has the application begin a request, and the task answer it if that takes time. While a client does not read its
  /// answers, its requests wait for the task.
  private func begin(_ stream: HTTP2Stream, _ body: RequestBody, hasBody: Bool) {
    guard let context else { return }
    let slot = AnswerSlot(requester: NIOLoopBound(self, eventLoop: context.eventLoop), number: Int(stream.id))
    var exchange: Exchange
    do throws(RequestFault) {
      exchange = try stream.head.exchange(
        body, hasBody: hasBody, on: connection, slot: handover.mayTake ? slot : nil)
    } catch {
      let answer = application.answer(to: error, requestID: stream.head.fields.requestID)
      send(answer.head, HTTP2Answer(answer.bytes), on: stream)
      return scheduleFlush()
    }
    guard handover.mayTake else { return handover.give(RequestTask(exchange: exchange, work: nil), stream.id) }
    stream.isRunning = true
    switch application.begin(&exchange) {
    case .taken: return
    case .later(let work): handover.give(RequestTask(exchange: exchange, work: work), stream.id)
    case .now(let answer):
      guard case .bytes = answer.body else {
        handover.give(RequestTask(exchange: exchange) { _ in answer }, stream.id)
        break
      }
      let hasRoom = takeCharge(of: answer.bytes.readableBytes, for: stream.id)
      let isRead = exchange.method == .get || exchange.method == .head
      let answer = hasRoom ? answer : AnswerWriter.refusal(of: answer.head, isRead: isRead, application)
      stream.isRunning = false
      send(answer.head, HTTP2Answer(answer.bytes), on: stream)
      return scheduleFlush()
    }
    stream.isRunning = false
  }

  /// The network of a request's client.
  private func network(of stream: HTTP2Stream) -> ClientAddress {
    connection.client(forwardedFor: stream.head.fields.forwardedFor).network
  }

  /// Submits an answer; a flush follows.
  func send(_ head: HTTPResponse, _ answer: HTTP2Answer, on stream: HTTP2Stream) {
    var fields = HTTP2Headers(reservingFields: head.headerFields.count + 1, bytes: 512)
    let hasLength = head.status.hasLength
    for field in head.headerFields where hasLength || field.name != .contentLength {
      fields.append(
        field.name.canonicalName, field.value, indexing: field.name.isUnique ? .withoutIndexing : .incremental)
    }
    if hasLength, !answer.isOpen, head.headerFields[.contentLength] == nil {
      fields.append("content-length", String(answer.waitingBytes))
    }
    submit([":status": String(head.status.code)], fields, answer, on: stream)
  }

  func submit(_ status: HTTP2Headers, _ fields: HTTP2Headers, _ answer: HTTP2Answer, on stream: HTTP2Stream) {
    stream.endBody()
    stream.answer = answer
    handover.waitingBytes += answer.waitingBytes
    // The end of an answer's body is also the moment to stop the request's.
    let hasBody = answer.waitingBytes > 0 || answer.isOpen || !stream.isRequestEnded
    stream.answer.isSent = !hasBody
    // Fails only if the stream or the session has ended.
    try? session?.submit(
      responseTo: stream.id, status: status, headers: fields, slot: Int(stream.id), hasBody: hasBody)
  }

  /// Opens the windows by what has arrived on a stream and is not held any more.
  func consume(_ stream: HTTP2Stream) {
    guard stream.unconsumed > 0 else { return }
    // Fails only if the session has ended.
    try? session?.consume(stream.unconsumed, streamID: stream.id)
    stream.unconsumed = 0
    scheduleFlush()
  }
}

/// Answers that are given through slots.
extension HTTP2Connection: SlotOwner {
  private static let acceptedStatus: HTTP2Headers = [":status": "202"]
  private static let okStatus: HTTP2Headers = [":status": "200"]

  func answer(_ answer: Answer, to number: Int) {
    guard let stream = endRun(Int32(number)) else { return }
    hasAnswers = true
    send(answer.head, HTTP2Answer(answer.bytes), on: stream)
  }

  func answer(_ answer: BriefAnswer, to number: Int) {
    guard let stream = endRun(Int32(number)) else { return }
    hasAnswers = true
    var fields = answerFields
    answerFields = HTTP2Headers()
    fields.removeAll()
    fields.append("content-type", answer.contentType)
    fields.append("location", answer.location, indexing: .withoutIndexing)
    fields.append("content-length", String(answer.body.count))
    fields.append("x-request-id", answer.requestID, indexing: .withoutIndexing)
    fields.append("date", answer.date)
    let status =
      switch answer.status {
      case .accepted: Self.acceptedStatus
      case .ok: Self.okStatus
      default: HTTP2Headers(dictionaryLiteral: (":status", String(answer.status.code)))
      }
    submit(status, fields, HTTP2Answer(answer.body), on: stream)
    answerFields = fields
  }

  func flushAnswers() {
    guard hasAnswers else { return }
    hasAnswers = false
    flush()
  }
}

/// Answers to requests of `next()`. They have no effect if the stream was reset.
extension HTTP2Connection: AnswerSink {
  func answer(_ head: HTTPResponse, body: ByteBuffer, to number: Int) -> Bool {
    let streamID = Int32(number)
    guard takeCharge(of: body.readableBytes, for: streamID) else { return false }
    handover.finished()
    guard let stream = endRun(streamID) else { return true }
    send(head, HTTP2Answer(body), on: stream)
    scheduleFlush()
    return true
  }

  func begin(_ head: HTTPResponse, to number: Int) -> Bool {
    let streamID = Int32(number)
    guard takeCharge(of: AnswerWriter.partSize, for: streamID) else { return false }
    guard let stream = endRun(streamID) else { return true }
    send(head, .inParts, on: stream)
    return true
  }

  func write(_ part: ByteBuffer, to number: Int, _ continuation: CheckedContinuation<Void, any Error>) {
    let streamID = Int32(number)
    guard let stream = streams[streamID], stream.answer.isOpen else {
      return continuation.resume(throwing: CancellationError())
    }
    stream.answer.add(part)
    stream.writer = continuation
    handover.waitingBytes += part.readableBytes
    session?.resume(streamID: streamID)
    scheduleFlush()
  }

  func finish(_ number: Int) {
    let streamID = Int32(number)
    handover.finished()
    streams[streamID]?.answer.isOpen = false
    session?.resume(streamID: streamID)
    scheduleFlush()
  }

  /// Charges an answer. Returns false if the budget has no room for it.
  private func takeCharge(of bytes: Int, for streamID: Int32) -> Bool {
    guard let stream = streams[streamID] else { return true }
    return stream.answerCharge.take(bytes, of: network(of: stream))
  }
}

/// Requests whose bodies are handed over in parts.
extension HTTP2Connection: BodySource {
  func takePart(of number: Int, _ continuation: CheckedContinuation<ByteBuffer?, any Error>) {
    guard let stream = streams[Int32(number)], stream.body != nil else {
      return continuation.resume(throwing: CancellationError())
    }
    if stream.body?.isWanted == false { admitBody(of: stream) }
    if let part = stream.body?.parts.popFirst() {
      continuation.resume(returning: part)
      if stream.body?.parts.isEmpty == true { consume(stream) }
    } else if let error = stream.body?.error {
      continuation.resume(throwing: error)
    } else if stream.body?.isEnded == true {
      continuation.resume(returning: nil)
    } else {
      stream.body?.taker = continuation
    }
  }

  private func admitBody(of stream: HTTP2Stream) {
    guard stream.admit(), let body = stream.body, let context else { return }
    do throws(NGHTTP2Failure) {
      if body.awaitsContinue {
        stream.body?.awaitsContinue = false
        try session?.submit(interimTo: stream.id, status: [":status": "100"])
      }
      let size = min(body.declaredLength ?? limits.bodySize, limits.bodySize)
      // The body of a log-in is read before anybody is admitted.
      if size > Self.firstWindow, connection.isKnown {
        try session?.setWindow(size, streamID: stream.id)
        try session?.setWindow(Self.firstWindow + limits.bodySize, streamID: 0)
      }
    } catch {
      // The session has ended.
    }
    scheduleFlush()
    stream.bodyTimer = context.eventLoop.assumeIsolated().scheduleTask(in: TimeAmount(limits.bodyTimeout)) {
      stream.body?.fail(RequestFault(.timeout, "the body did not arrive within \(self.limits.bodyTimeout)"))
    }
  }
}

extension HTTPField.Name {
  /// Whether the field's values do not repeat, so that the header table has no use for them.
  fileprivate var isUnique: Bool { self == .requestID || self == .location }
}
