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

/// The bytes that the bodies of all connections together may occupy, shared among the networks of clients. Thread-safe.
///
/// A network may hold as many bytes as remain free (the dynamic threshold of shared-memory switches, Choudhury and
/// Hahne 1998): one alone gets half of the limit, and each further one finds room. It may always hold one body.
final class BodyBudget: Sendable {
  static let refusal = Refusal(.overloaded, "too many bodies are being read; send the request again")

  private struct State {
    var used = 0
    var perNetwork: [ClientAddress: Int] = [:]
  }

  private let limit: Int
  private let largest: Int
  private let state = Mutex(State())

  /// `largest`: the bytes of the largest body, at most the limit.
  init(limit: Int, largest: Int) { (self.limit, self.largest) = (limit, largest) }

  /// Takes bytes, to be released when the request is answered. Returns false, and takes none, if they exceed the limit
  /// or the network's share of it.
  func take(_ bytes: Int, of network: ClientAddress) -> Bool {
    state.withLock { state in
      let (used, held) = (state.used + bytes, state.perNetwork[network, default: 0] + bytes)
      guard used <= limit, held <= max(limit - used, largest) else { return false }
      state.used = used
      state.perNetwork[network] = held
      return true
    }
  }

  /// Releases bytes that were taken for the network.
  func release(_ bytes: Int, of network: ClientAddress) {
    state.withLock { state in
      let rest = state.perNetwork[network, default: 0] - bytes
      state.used -= bytes
      state.perNetwork[network] = rest > 0 ? rest : nil
    }
  }

  /// The bytes that are taken.
  var taken: Int { state.withLock { $0.used } }
}
