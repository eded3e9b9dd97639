import DequeModule
import NIOCore

/// Requests whose bodies are handed over in parts.
extension HTTP1Connection: BodySource {
  func takePart(of number: Int, _ continuation: CheckedContinuation<ByteBuffer?, any Error>) {
    guard case .streaming = state, number == body.number else {
      return continuation.resume(throwing: CancellationError())
    }
    if !body.isWanted { admitBody() }
    if let part = body.parts.popFirst() {
      continuation.resume(returning: part)
    } else if let error = body.error {
      continuation.resume(throwing: error)
    } else if body.isEnded {
      continuation.resume(returning: nil)
    } else {
      body.taker = continuation
    }
    continueReading()
  }

  /// Hands over the head of a request whose body has not arrived.
  func stream() {
    guard case .collecting = state, let context, let (head, collected) = takeArriving() else { return }
    state = .streaming
    body = ArrivingBody(
      declaredLength: head.declaredLength, expectsContinue: head.expectsContinue, collected: collected,
      number: body.number + 1, network: network(of: head))
    let source = NIOLoopBound<any BodySource>(self, eventLoop: context.eventLoop)
    let stream = BodyStream(source: source, eventLoop: context.eventLoop, number: body.number)
    begin(head, .inParts(stream))
  }

  /// The network of a request's client.
  func network(of head: HTTP1Head) -> ClientAddress {
    connection.client(forwardedFor: head.fields.forwardedFor).network
  }

  private func admitBody() {
    body.isWanted = true
    if !charge.add(body.parts.reduce(0) { $0 + $1.readableBytes }, of: body.network) { body.fail(BodyCharge.refusal) }
    guard !body.isEnded, body.error == nil else { return }
    if body.awaitsContinue {
      body.awaitsContinue = false
      context?.writeAndFlush(wrapOutboundOut(HTTP1Answer.goOn), promise: nil)
    }
    startBodyTimer()
  }

  /// Ends the body of the present request with an error.
  func fail(_ error: any Error) {
    stream()
    body.isBroken = true
    body.fail(error)
  }

  /// Whether the answer to the request in parts must be the last of the connection.
  var closesConnection: Bool {
    guard !body.isEnded else { return false }
    // RFC 9110 §10.1.1: a client that gets its answer instead of `100 Continue` may send the body or not.
    return body.isBroken || body.awaitsContinue || body.declaredLength ?? 0 > limits.maximumDiscard
  }

  func startBodyTimer() {
    guard let context, bodyTimer == nil else { return }
    bodyTimer = context.eventLoop.assumeIsolated().scheduleTask(in: TimeAmount(limits.bodyTimeout)) {
      self.bodyTimer = nil
      let refusal = RequestFault(.timeout, "the body did not arrive within \(self.limits.bodyTimeout)")
      if case .discarding = self.state { self.life.close() } else { self.fail(refusal) }
    }
  }

  func stopBodyTimer() {
    bodyTimer?.cancel()
    bodyTimer = nil
  }
}
