package import NIOCore

/// What a listener serves. Called by connections; implemented by each kind of server.
package protocol Application: Sendable {
  /// Begins to handle a request that has arrived whole, or of which the head has. Refusals are answers too.
  ///
  /// Called on the event loop of the connection, which serves other connections: it must not block.
  func begin(_ exchange: inout Exchange) -> Reply

  /// The answer to a malformed request. `requestID`: the value of `X-Request-Id`.
  func answer(to fault: RequestFault, requestID: String?) -> Answer

  /// What the application remembers of a connection; made when it is accepted, on its event loop.
  func makeMemory(on eventLoop: any EventLoop) -> (any AnyObject & Sendable)?
}

extension Application {
  package func makeMemory(on eventLoop: any EventLoop) -> (any AnyObject & Sendable)? { nil }
}

/// How a request is answered.
package enum Reply: Sendable {
  case now(Answer)
  /// Through the exchange's slot, which gets exactly one answer, after `Application.begin` has returned.
  case taken
  /// By a task. It gets the exchange with what its client waits for. An error ends the connection or stream.
  case later(@Sendable (Exchange) async throws -> Answer)
}

extension Reply {
  /// The answer to an exchange that has no slot.
  package func answer(to exchange: Exchange) async throws -> Answer {
    switch self {
    case .now(let answer): answer
    case .later(let work): try await work(exchange)
    // Only a slot lets an application take a request.
    case .taken: fatalError("a request was taken that has no slot")
    }
  }
}

/// The place for the answer to one request that needs no task.
package struct AnswerSlot: Sendable {
  let requester: NIOLoopBound<any SlotOwner>
  let number: Int

  /// Gives the answer. Call it once, on the event loop; `flush` must follow. If the client has gone it has no effect.
  package func answer(_ answer: BriefAnswer) { requester.value.answer(answer, to: number) }

  /// Gives an answer whose body is at hand.
  package func answer(_ answer: Answer) { requester.value.answer(answer, to: number) }

  /// Sends the answers that have gathered. Several calls do no harm.
  package func flush() { requester.value.flushAnswers() }
}

/// Has the slots of its requests. Confined to its event loop.
protocol SlotOwner: AnyObject {
  func answer(_ answer: BriefAnswer, to number: Int)
  func answer(_ answer: Answer, to number: Int)
  func flushAnswers()
}

/// Why a request cannot be read, or its answer not be sent. The text contains nothing of the request.
package struct RequestFault: Error, Hashable, Sendable {
  package enum Kind: Sendable {
    /// It is not HTTP.
    case malformed
    /// The method or the transfer coding is unknown.
    case notImplemented
    case headersTooLarge
    /// Too many bodies are being read.
    case overloaded
    /// The body did not arrive in time.
    case timeout
    /// Too many answers wait to be read; the request may have been carried out.
    case outcomeUnknown
  }

  package let kind: Kind
  package let detail: String

  init(_ kind: Kind, _ detail: String) { (self.kind, self.detail) = (kind, detail) }
}
