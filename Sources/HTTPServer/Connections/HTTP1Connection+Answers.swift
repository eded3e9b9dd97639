import DequeModule
import HTTPTypes
import NIOCore

/// Writes answers: those of the connection's task, those given through slots, and refusals of the connection itself.
extension HTTP1Connection: SlotOwner {
  /// Returns the next request, or nil when the connection is closed.
  /// Call it on the event loop, after the previous request was answered.
  func next() async -> RequestTask? {
    if case .closed = state { return nil }
    if let request = handover.take() { return request }
    return await withCheckedContinuation { handover.wait($0) }
  }

  /// Goes on to the next request, or drops the rest of the answered one.
  private func endAnswer() {
    switch state {
    case .answering:
      state = .idle
      resume()
    case .streaming where body.isEnded:
      state = .idle
      resume()
    case .streaming:
      state = .discarding
      body.parts.removeAll()
      startBodyTimer()
      continueReading()
    // Writing may find that the connection is closed.
    case .idle, .collecting, .discarding, .closed: break
    }
  }

  func answer(_ answer: BriefAnswer, to number: Int) {
    putAnswer { HTTP1Answer.write(answer, isLast: $0, to: &$1) }
  }

  func answer(_ answer: Answer, to number: Int) {
    putAnswer {
      HTTP1Answer.write(answer.head, length: answer.bytes.readableBytes, isLast: $0, to: &$1)
      $1.writeImmutableBuffer(answer.bytes)
    }
  }

  /// Writes the answer to the present request; `flushAnswers` follows.
  private func putAnswer(_ write: (_ isLast: Bool, _ buffer: inout ByteBuffer) -> Void) {
    charge.release()
    guard case .answering = state, let context else { return }
    var bytes = context.channel.allocator.buffer(capacity: 512)
    write(isLastAnswer, &bytes)
    life.wrote(bytes.readableBytes)
    context.write(wrapOutboundOut(bytes), promise: nil)
    state = .idle
    life.answerEnded()
  }

  func flushAnswers() {
    context?.flush()
    resume()
  }

  /// Whether the connection closes after the answer to the present request.
  private var isLastAnswer: Bool { life.isLastRequest && life.openRequests == 1 }

  /// Answers what is no request for the task, and ends the connection.
  func refuse(_ violation: RuleViolation) {
    state = .closed
    let answer = application.answer(to: violation.fault, requestID: violation.requestID)
    write(answer.head, answer.bytes)
    handover.end()
  }

  /// Writes an answer, and ends the connection if it is the last one. `charge` is that of a long one.
  private func write(_ head: HTTPResponse, _ content: ByteBuffer, charge answerCharge: AnswerCharge? = nil) {
    charge.release()
    guard let context else { return }
    var bytes = context.channel.allocator.buffer(capacity: 512 + min(content.readableBytes, HTTP1Answer.maximumCopy))
    HTTP1Answer.write(head, length: content.readableBytes, isLast: isLastAnswer, to: &bytes)
    if content.readableBytes <= HTTP1Answer.maximumCopy { bytes.writeImmutableBuffer(content) }
    life.wrote(bytes.readableBytes)
    context.write(wrapOutboundOut(bytes), promise: nil)
    if var answerCharge {
      let written = context.eventLoop.makePromise(of: Void.self)
      written.futureResult.assumeIsolated().whenComplete { _ in answerCharge.release() }
      life.wrote(content.readableBytes)
      context.write(wrapOutboundOut(content), promise: written)
    }
    context.flush()
    life.answerEnded()
  }
}

/// An answer in parts while it is written.
struct PartedAnswer {
  var charge: AnswerCharge
  let isChunked: Bool
  /// The task that waits until the client has read.
  var writer: CheckedContinuation<Void, any Error>?

  mutating func resume() {
    writer?.resume()
    writer = nil
  }

  /// Gives up: the connection has ended.
  mutating func fail() {
    charge.release()
    writer?.resume(throwing: CancellationError())
    writer = nil
  }
}

/// Answers of the connection's task.
extension HTTP1Connection: AnswerSink {
  private var isAnswering: Bool {
    switch state {
    case .answering, .streaming: true
    case .idle, .collecting, .discarding, .closed: false
    }
  }

  private func makeCharge(_ bytes: Int) -> AnswerCharge? {
    var charge = AnswerCharge(answers)
    return charge.take(bytes, of: connection.client(forwardedFor: asker.forwardedFor).network) ? charge : nil
  }

  func answer(_ head: HTTPResponse, body content: ByteBuffer, to number: Int) -> Bool {
    guard isAnswering else { return true }
    var answerCharge: AnswerCharge?
    if content.readableBytes > HTTP1Answer.maximumCopy {
      answerCharge = makeCharge(content.readableBytes)
      guard answerCharge != nil else { return false }
    }
    if case .streaming = state, closesConnection { life.isLastRequest = true }
    write(head, content, charge: answerCharge)
    endAnswer()
    return true
  }

  func begin(_ head: HTTPResponse, to number: Int) -> Bool {
    guard isAnswering, let context else { return true }
    guard let answerCharge = makeCharge(AnswerWriter.partSize) else { return false }
    charge.release()
    let isDelimited = head.headerFields[.contentLength] != nil || !asker.isOld
    if case .streaming = state, closesConnection { life.isLastRequest = true }
    if !isDelimited { life.isLastRequest = true }
    let answer = PartedAnswer(charge: answerCharge, isChunked: head.headerFields[.contentLength] == nil && isDelimited)
    var bytes = context.channel.allocator.buffer(capacity: 512)
    HTTP1Answer.write(head, isChunked: answer.isChunked, isLast: isLastAnswer, to: &bytes)
    life.wrote(bytes.readableBytes)
    // Flushed with the first part.
    context.write(wrapOutboundOut(bytes), promise: nil)
    parted = answer
    return true
  }

  func write(_ part: ByteBuffer, to number: Int, _ continuation: CheckedContinuation<Void, any Error>) {
    guard let answer = parted, let context else { return continuation.resume(throwing: CancellationError()) }
    var bytes = part
    if answer.isChunked {
      bytes = context.channel.allocator.buffer(capacity: part.readableBytes + 16)
      HTTP1Answer.write(chunk: part, to: &bytes)
    }
    life.wrote(bytes.readableBytes)
    parted?.writer = continuation
    context.writeAndFlush(wrapOutboundOut(bytes), promise: nil)
    if context.channel.isWritable { parted?.resume() } else { life.watchWrites() }
  }

  func finish(_ number: Int) {
    guard let answer = parted, let context else { return }
    parted?.charge.release()
    parted = nil
    if answer.isChunked {
      life.wrote(HTTP1Answer.lastChunk.readableBytes)
      context.write(wrapOutboundOut(HTTP1Answer.lastChunk), promise: nil)
    }
    context.flush()
    life.answerEnded()
    endAnswer()
  }
}
