import DequeModule
import HTTP2
import NIOCore

/// One request of an HTTP/2 connection and its answer. Confined to the connection's event loop.
final class HTTP2Stream {
  /// The most bytes of memory that a body leaves to the next one.
  private static let keptCapacity = 4096

  private(set) var id: Int32
  var head = HTTP2Head()
  /// What has arrived of the body before the request was handed over.
  var collected = ByteBuffer()
  /// The body of a request that is handed over in parts, nil for others.
  var body: ArrivingBody?
  var charge: BodyCharge
  var answer = HTTP2Answer()
  /// The answer while the task handles the request.
  var pending: PendingAnswer?
  var answerCharge: AnswerCharge
  /// The task that waits until the part of an answer is sent.
  var writer: CheckedContinuation<Void, any Error>?
  /// Whether the request was handed over or refused.
  var isHandedOver = false
  /// Whether the request is being handled, so that its body is held.
  var isRunning = false
  /// Whether the client has sent all of its request.
  var isRequestEnded = false
  var bodyTimer: Scheduled<Void>?
  /// Received bytes that still keep the windows closed.
  var unconsumed = 0

  init(id: Int32, budgets: ByteBudgets) {
    self.id = id
    charge = BodyCharge(budgets.bodies)
    answerCharge = AnswerCharge(budgets.answers)
  }

  /// Adds to the body of a request that is handed over in parts. Returns whether the bytes are held.
  func add(_ data: Span<UInt8>) -> Bool {
    guard var body, body.error == nil else { return false }
    self.body = nil
    defer { self.body = body }
    body.awaitsContinue = false
    if body.isWanted, !charge.add(data.count, of: body.network) {
      body.fail(BodyCharge.refusal)
      return false
    }
    let isAwaited = body.taker != nil
    // Small frames share a buffer: one for each would take many times their size.
    var part = body.parts.popLast() ?? ByteBuffer()
    part.append(copying: data)
    body.add(part)
    return !isAwaited
  }

  /// Notes that the task wants the body. Returns whether more of it may come.
  func admit() -> Bool {
    guard var body else { return false }
    self.body = nil
    defer { self.body = body }
    body.isWanted = true
    let held = body.parts.reduce(0) { $0 + $1.readableBytes }
    if !charge.add(held, of: body.network) { body.fail(BodyCharge.refusal) }
    return !body.isEnded && body.error == nil
  }

  /// Drops what has arrived of the body and what follows.
  func endBody() {
    bodyTimer?.cancel()
    bodyTimer = nil
    body?.fail(CancellationError())
    // One that has ended does not fail.
    body?.parts.removeAll()
    collected.clear(minimumCapacity: 0)
    charge.release()
  }

  /// Lets the task that writes the answer go on.
  func resumeWriter() {
    writer?.resume()
    writer = nil
  }

  /// Discards the unsent rest of the answer.
  func endAnswer() {
    answerCharge.release()
    answer = HTTP2Answer()
    writer?.resume(throwing: CancellationError())
    writer = nil
  }

  /// Becomes another stream, with the memory of one that has ended.
  func reset(id: Int32) {
    self.id = id
    if collected.capacity > Self.keptCapacity { collected = ByteBuffer() }
    pending = nil
    (isHandedOver, isRunning, isRequestEnded, unconsumed) = (false, false, false, 0)
  }
}

/// The body of an answer while it is sent.
struct HTTP2Answer {
  /// The bytes that wait to be sent, of which one of the two is empty.
  private var bytes: ArraySlice<UInt8> = []
  /// Not copied: many answers may be the same document, and the client decides how long they wait.
  private var shared = ByteBuffer()
  /// Whether the whole answer was sent.
  var isSent = false
  /// Whether further parts may come.
  var isOpen = false
  private var sentBytes = 0
  /// `waitingBytes` and `sentBytes` at the last look.
  private var seen = (waiting: 0, sent: 0)

  init() {}

  init(_ body: [UInt8]) { bytes = body[...] }

  init(_ body: ByteBuffer) { shared = body }

  /// An answer whose body comes in parts.
  static var inParts: HTTP2Answer {
    var answer = HTTP2Answer()
    answer.isOpen = true
    return answer
  }

  /// The number of bytes that wait to be sent.
  var waitingBytes: Int { bytes.count + shared.readableBytes }

  /// Adds a part. The one before must have been sent.
  mutating func add(_ part: ByteBuffer) { shared = part }

  /// Takes the next piece, and whether it is the last; nil if the next part has not come yet.
  mutating func next(upTo limit: Int) -> (piece: ArraySlice<UInt8>, isLast: Bool)? {
    if isOpen, waitingBytes == 0 { return nil }
    var piece = bytes.prefix(limit)
    if bytes.isEmpty {
      piece = (shared.readBytes(length: min(limit, shared.readableBytes)) ?? [])[...]
    } else {
      bytes = bytes.dropFirst(limit)
    }
    sentBytes &+= piece.count
    isSent = !isOpen && waitingBytes == 0
    return (piece, isSent)
  }

  /// Notes what waits now.
  mutating func look() { seen = (waitingBytes, sentBytes) }

  /// Whether the client has taken too little of what waited at the last look, `time` ago.
  func isSlow(after time: Duration) -> Bool {
    guard seen.waiting > 0, waitingBytes > 0 else { return false }
    return sentBytes &- seen.sent < ReadingRate.leastBytes(of: seen.waiting, within: time)
  }
}
