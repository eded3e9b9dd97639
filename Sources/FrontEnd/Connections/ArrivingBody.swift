import FanfareCore
import HTTPTypes
import NIOCore
import Synchronization

/// The body of a request that is handed over in parts; a value of `RequestAggregator`.
struct ArrivingBody {
  /// Tells the requests of a connection apart: a body must not be read after its request was answered.
  let number: Int
  /// The value of `Content-Length`.
  let declaredLength: Int?
  var parts = CircularBuffer<ByteBuffer>()
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
  init() { (number, declaredLength) = (0, nil) }

  /// The body of a request of which `collected` has arrived.
  init(head: HTTPRequest, collected: ByteBuffer, number: Int) {
    self.number = number
    declaredLength = head.headerFields[.contentLength].flatMap { Int($0) }
    if collected.readableBytes > 0 {
      parts.append(collected)
    } else {
      awaitsContinue = head.headerFields[.expect]?.lowercased() == "100-continue"
    }
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

/// The body of a request in parts, for the task that answers it. Reading it admits the body.
struct BodyStream: AsyncSequence, Sendable {
  struct AsyncIterator: AsyncIteratorProtocol {
    let stream: BodyStream

    mutating func next() async throws -> ByteBuffer? {
      let (requests, number) = (stream.requests, stream.number)
      return try await withCheckedThrowingContinuation { continuation in
        // The task may run on another thread than the connection.
        stream.eventLoop.execute { requests.value.takePart(of: number, continuation) }
      }
    }
  }

  let requests: NIOLoopBound<RequestAggregator>
  let eventLoop: any EventLoop
  let number: Int

  func makeAsyncIterator() -> AsyncIterator { AsyncIterator(stream: self) }
}

/// The body of a request for which the budget has no room. The refusal comes when it is read, after those of the
/// caller.
struct RefusedBody: AsyncSequence, Sendable {
  struct AsyncIterator: AsyncIteratorProtocol {
    mutating func next() async throws -> ByteBuffer? { throw BodyBudget.refusal }
  }

  func makeAsyncIterator() -> AsyncIterator { AsyncIterator() }
}

/// The bytes that the bodies of all connections together may occupy. Thread-safe.
final class BodyBudget: Sendable {
  static let refusal = Refusal(.overloaded, "too many bodies are being read; send the request again")

  private let limit: Int
  private let used = Atomic(0)

  init(limit: Int) { self.limit = limit }

  /// Takes bytes, to be released when the request is answered. Returns false, and takes none, if they exceed the limit.
  func take(_ bytes: Int) -> Bool {
    guard used.add(bytes, ordering: .relaxed).newValue > limit else { return true }
    used.subtract(bytes, ordering: .relaxed)
    return false
  }

  func release(_ bytes: Int) { used.subtract(bytes, ordering: .relaxed) }

  /// The bytes that are taken.
  var taken: Int { used.load(ordering: .relaxed) }
}
