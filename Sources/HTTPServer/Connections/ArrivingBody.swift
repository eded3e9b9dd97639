import DequeModule
package import NIOCore

/// The body of a request that is handed over in parts; a value of its `BodySource`.
struct ArrivingBody {
  /// Tells the requests of a connection apart: a body must not be read after its request was answered.
  let number: Int
  /// The value of `Content-Length`.
  let declaredLength: Int?
  /// The network of the request's client.
  let network: ClientAddress
  var parts = Deque<ByteBuffer>()
  /// Whether the task has asked for the body.
  var isWanted = false
  /// Whether the client waits for `100 Continue`.
  var awaitsContinue = false
  private(set) var isEnded = false
  /// Why the body cannot be read to its end.
  private(set) var error: (any Error)?
  /// Whether nothing that follows on the connection can be understood.
  var isBroken = false
  var taker: CheckedContinuation<ByteBuffer?, any Error>?

  /// A body before the first request.
  init() { (number, declaredLength, network) = (0, nil, .unknown) }

  /// The body of a request of which `collected` has arrived.
  init(
    declaredLength: Int?, expectsContinue: Bool, collected: ByteBuffer, number: Int, network: ClientAddress
  ) {
    (self.number, self.declaredLength, self.network) = (number, declaredLength, network)
    if collected.readableBytes > 0 { parts.append(collected) } else { awaitsContinue = expectsContinue }
  }

  /// Adds a part, or gives it to the task that waits for it.
  mutating func add(_ part: ByteBuffer) {
    guard let taker else { return parts.append(part) }
    self.taker = nil
    taker.resume(returning: part)
  }

  mutating func end() {
    isEnded = true
    awaitsContinue = false
    taker?.resume(returning: nil)
    taker = nil
  }

  /// Ends the body with an error; the first one counts.
  mutating func fail(_ error: any Error) {
    guard self.error == nil, !isEnded else { return }
    self.error = error
    parts.removeAll()
    taker?.resume(throwing: error)
    taker = nil
  }
}

/// Has the bodies that `BodyStream` reads. Confined to its event loop.
protocol BodySource: AnyObject {
  /// Gives the next part of the body of request `number`, nil at its end. The first call admits the body.
  func takePart(of number: Int, _ continuation: CheckedContinuation<ByteBuffer?, any Error>)
}

/// The body of a request in parts, for the task that answers it. Reading it admits the body.
package struct BodyStream: AsyncSequence, Sendable {
  package struct AsyncIterator: AsyncIteratorProtocol {
    let stream: BodyStream

    package mutating func next() async throws -> ByteBuffer? {
      let (source, number) = (stream.source, stream.number)
      return try await withCheckedThrowingContinuation { continuation in
        // The task may run on another thread than the connection.
        stream.eventLoop.execute { source.value.takePart(of: number, continuation) }
      }
    }
  }

  let source: NIOLoopBound<any BodySource>
  let eventLoop: any EventLoop
  let number: Int

  package func makeAsyncIterator() -> AsyncIterator { AsyncIterator(stream: self) }
}

/// The bytes of the budget that one request holds until it is answered.
struct BodyCharge {
  static let refusal = RequestFault(.overloaded, "too many bodies are being read; send the request again")

  /// The first bytes of each body are free: an ordinary request costs no atomic operation, and callers with large
  /// bodies cannot keep out ordinary requests.
  private static let uncountedBytes = 4096

  private let budget: ByteBudget
  private var taken = 0
  /// The bytes of the request's body that have arrived.
  private var arrived = 0
  /// The network that the bytes are charged to.
  private var network = ClientAddress.unknown

  init(_ budget: ByteBudget) { self.budget = budget }

  /// Charges bytes that have arrived from a network, which is the same for all of a request. Returns false if the
  /// budget has no room for them.
  mutating func add(_ bytes: Int, of network: @autoclosure () -> ClientAddress) -> Bool {
    arrived += bytes
    let due = arrived - Self.uncountedBytes - taken
    guard due > 0 else { return true }
    if taken == 0 { self.network = network() }
    guard budget.take(due, of: self.network) else { return false }
    taken += due
    return true
  }

  /// Begins the next request. Returns the charge of the last one, which its answer releases; nil if it has none.
  mutating func handOver() -> BodyCharge? {
    defer { (taken, arrived) = (0, 0) }
    return taken > 0 ? self : nil
  }

  /// Returns all bytes, for the next request.
  mutating func release() {
    if taken > 0 { budget.release(taken, of: network) }
    (taken, arrived) = (0, 0)
  }
}
