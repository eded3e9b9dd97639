import DequeModule
import HTTP2Client
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
  /// Whether the request was handed over or refused.
  var isHandedOver = false
  /// Whether the request is being handled, so that its body is held.
  var isRunning = false
  /// Whether the client has sent all of its request.
  var isRequestEnded = false
  var bodyTimer: Scheduled<Void>?
  /// Received bytes that still keep the windows closed.
  var unconsumed = 0

  init(id: Int32, budget: BodyBudget) {
    self.id = id
    charge = BodyCharge(budget)
  }

  /// Adds to the body of a request that is handed over in parts. Returns whether the bytes are held.
  func add(_ data: Span<UInt8>) -> Bool {
    guard var body, body.error == nil else { return false }
    self.body = nil
    defer { self.body = body }
    body.awaitsContinue = false
    if body.isWanted, !charge.add(data.count, of: body.network) {
      body.fail(BodyBudget.refusal)
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
    if !charge.add(held, of: body.network) { body.fail(BodyBudget.refusal) }
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

  /// Becomes another stream, with the memory of one that has ended.
  func reset(id: Int32) {
    self.id = id
    if collected.capacity > Self.keptCapacity { collected = ByteBuffer() }
    answer = HTTP2Answer()
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
  /// `waitingBytes` at the last look.
  private var seen: Int?

  init() {}

  init(_ body: [UInt8]) { bytes = body[...] }

  init(_ body: ByteBuffer) { shared = body }

  /// The number of bytes that wait to be sent.
  var waitingBytes: Int { bytes.count + shared.readableBytes }

  /// Takes the next piece, and whether it is the last.
  mutating func next(upTo limit: Int) -> (piece: ArraySlice<UInt8>, isLast: Bool) {
    var piece = bytes.prefix(limit)
    if bytes.isEmpty {
      piece = (shared.readBytes(length: min(limit, shared.readableBytes)) ?? [])[...]
    } else {
      bytes = bytes.dropFirst(limit)
    }
    isSent = waitingBytes == 0
    return (piece, isSent)
  }

  /// Whether something has waited since the last look of which nothing was sent.
  mutating func isStuck() -> Bool {
    defer { seen = waitingBytes }
    return waitingBytes > 0 && seen == waitingBytes
  }
}
