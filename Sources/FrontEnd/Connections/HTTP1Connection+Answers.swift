import DequeModule
import HTTPTypes
import HummingbirdCore
import NIOCore
import NIOHTTP1

/// Writes answers: those of the connection's task, direct ones, and refusals of the connection itself.
extension HTTP1Connection: DirectRequester {
  /// Returns the next request, or nil when the connection is closed.
  /// Call it on the event loop, after the previous request was answered.
  func next() async -> Request? {
    if case .closed = state { return nil }
    if let request = handover.take() { return request }
    return await withCheckedContinuation { handover.wait($0) }
  }

  /// Answers the request of `next()`.
  func answer(_ head: HTTPResponse, body content: ByteBuffer) {
    switch state {
    case .answering:
      write(head, content)
      // Writing may find that the connection is closed.
      guard case .answering = state else { return }
      state = .idle
      resume()
    case .streaming:
      if closesConnection { life.isLastRequest = true }
      write(head, content)
      guard case .streaming = state else { return }
      if body.isEnded {
        state = .idle
        resume()
      } else {
        state = .discarding
        body.parts.removeAll()
        startBodyTimer()
        continueReading()
      }
    case .idle, .collecting, .discarding, .closed: break
    }
  }

  /// Lets a whole request be answered directly. Returns false if it is the router's.
  func takeDirectly(_ head: HTTP1Head, _ content: ByteBuffer) -> Bool {
    guard let direct, let context, head.head.method == .POST else { return false }
    return direct.routes.take(
      post: head.head.uri, fields: head.fields, body: content, of: connection, number: 0,
      for: NIOLoopBound(self, eventLoop: context.eventLoop), via: direct.mailbox)
  }

  func answer(_ answer: DirectAnswer, to number: Int) {
    charge.release()
    guard case .answering = state, let context else { return }
    var bytes = context.channel.allocator.buffer(capacity: 512)
    HTTP1Answer.write(answer, isLast: isLastAnswer, to: &bytes)
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
    let (head, document) = violation.answer
    write(head, ByteBuffer(bytes: document))
    handover.end()
  }

  /// Writes an answer, and ends the connection if it is the last one.
  private func write(_ head: HTTPResponse, _ content: ByteBuffer) {
    charge.release()
    guard let context else { return }
    var bytes = context.channel.allocator.buffer(capacity: 512 + min(content.readableBytes, HTTP1Answer.maximumCopy))
    HTTP1Answer.write(head, length: content.readableBytes, isLast: isLastAnswer, to: &bytes)
    if content.readableBytes <= HTTP1Answer.maximumCopy { bytes.writeImmutableBuffer(content) }
    context.write(wrapOutboundOut(bytes), promise: nil)
    if content.readableBytes > HTTP1Answer.maximumCopy { context.write(wrapOutboundOut(content), promise: nil) }
    context.flush()
    life.answerEnded()
  }
}
