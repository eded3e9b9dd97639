package import HTTPTypes
package import NIOCore

/// Writes the answers of a connection's task. Confined to the connection's event loop.
///
/// Each request gets either one call of `answer`, or one of `begin` followed by parts and `finish`. After the
/// connection or stream has ended, calls have no effect.
protocol AnswerSink: AnyObject {
  /// Answers a request with a body that is at hand. Returns false, and does nothing, if the budget has no room for it.
  func answer(_ head: HTTPResponse, body: ByteBuffer, to number: Int) -> Bool

  /// Begins an answer whose body comes in parts. Returns false, and does nothing, if the budget has no room for it.
  func begin(_ head: HTTPResponse, to number: Int) -> Bool

  /// Sends a part of the body. Resumes when the client has taken it, or so much of it that another part may follow;
  /// throws `CancellationError` if the connection or stream has ended.
  func write(_ part: ByteBuffer, to number: Int, _ continuation: CheckedContinuation<Void, any Error>)

  /// Ends an answer in parts.
  func finish(_ number: Int)
}

/// Gives the answer to a request to its connection.
///
/// A body that is written at once is handed over whole. Any other body is streamed: each write waits until the client
/// has taken its bytes, so that an answer of any size occupies `partSize` bytes.
package struct AnswerWriter: Sendable {
  /// The answer was replaced by a refusal: the budget had no room for it.
  struct Refused: Error {}

  /// A body whose length is not the one that was announced. The client must see that its answer is broken.
  private struct WrongLength: Error {}

  /// The most bytes that are handed over before the client has taken them.
  static let partSize = 65_536

  private let sink: NIOLoopBound<any AnswerSink>
  private let eventLoop: any EventLoop
  private let number: Int
  private let head: HTTPResponse
  private let isRead: Bool
  /// The length that was announced.
  private let length: Int?
  private var written = 0
  private var whole = ByteBuffer()
  private var hasBegun = false

  private let application: any Application

  /// `number` is that of the request at its connection.
  init(
    _ answer: Answer, to method: HTTPRequest.Method, number: Int, via sink: NIOLoopBound<any AnswerSink>,
    on eventLoop: any EventLoop, _ application: any Application
  ) {
    (self.sink, self.eventLoop, self.number) = (sink, eventLoop, number)
    (head, length, self.application) = (answer.head, answer.body.length, application)
    isRead = method == .get || method == .head
  }

  /// Writes the whole answer. Throws `Refused` if it was replaced.
  mutating func write(_ body: AnswerBody) async throws {
    switch body {
    case .bytes(let bytes): try await write(bytes)
    case .inParts(_, let make): try await make(&self)
    }
    try await finish()
  }

  /// Sends a part of the body; returns when the client has taken it. Throws if the client has gone.
  package mutating func write(_ buffer: ByteBuffer) async throws {
    written += buffer.readableBytes
    if let length, written > length { throw WrongLength() }
    if !hasBegun {
      if written == length { return whole = buffer }
      hasBegun = true
      let (head, number) = (head, number)
      guard await onLoop({ $0.begin(head, to: number) }) else { throw await refuse() }
    }
    var rest = buffer
    while let part = rest.readSlice(length: min(rest.readableBytes, Self.partSize)), part.readableBytes > 0 {
      let (sink, number) = (sink, number)
      try await withCheckedThrowingContinuation { continuation in
        if eventLoop.inEventLoop { return sink.value.write(part, to: number, continuation) }
        eventLoop.execute { sink.value.write(part, to: number, continuation) }
      }
    }
  }

  private func finish() async throws {
    if let length, written < length { throw WrongLength() }
    let (head, number, whole) = (head, number, whole)
    guard hasBegun else {
      guard await onLoop({ $0.answer(head, body: whole, to: number) }) else { throw await refuse() }
      return
    }
    await onLoop { $0.finish(number) }
  }

  /// Answers with a refusal instead. What the request asked for may have been done.
  private func refuse() async -> Refused {
    let answer = Self.refusal(of: head, isRead: isRead, application)
    let number = number
    // Short enough to find room always.
    _ = await onLoop { $0.answer(answer.head, body: answer.bytes, to: number) }
    return Refused()
  }

  /// The answer instead of one for which there is no room. What the request asked for may have been done.
  static func refusal(of head: HTTPResponse, isRead: Bool, _ application: any Application) -> Answer {
    let fault =
      isRead
      ? RequestFault(.overloaded, "too many answers wait to be read; read them, then send the request again")
      : RequestFault(.outcomeUnknown, "too many answers wait to be read; the request may have been carried out")
    return application.answer(to: fault, requestID: head.headerFields[.requestID])
  }

  /// The task may run on another thread than the connection.
  private func onLoop<Result: Sendable>(_ act: @escaping @Sendable (any AnswerSink) -> Result) async -> Result {
    if eventLoop.inEventLoop { return act(sink.value) }
    let sink = sink
    return await withCheckedContinuation { continuation in
      eventLoop.execute { continuation.resume(returning: act(sink.value)) }
    }
  }
}

/// The slowest that a client may read its answers.
enum ReadingRate {
  /// Slower than any network.
  private static let bytesPerSecond: Int64 = 1024

  /// The least number of bytes that a client must take within `time` while `waiting` bytes wait: those of the rate, or
  /// half of `waiting` if that is less. Half, because TLS adds bytes, so that the number of bytes taken is an estimate.
  static func leastBytes(of waiting: Int, within time: Duration) -> Int {
    let (seconds, attoseconds) = time.components
    let (whole, isHuge) = seconds.multipliedReportingOverflow(by: bytesPerSecond)
    let least = isHuge ? .max : Int(clamping: whole + attoseconds / (1_000_000_000_000_000_000 / bytesPerSecond))
    return max(1, min(waiting / 2, least))
  }
}

extension Answer {
  /// The body at hand.
  var bytes: ByteBuffer { if case .bytes(let bytes) = body { bytes } else { ByteBuffer() } }
}

extension HTTPField.Name {
  // The initialiser returns nil only for invalid field names; this literal is valid.
  package static let requestID = HTTPField.Name("X-Request-Id")!
}
