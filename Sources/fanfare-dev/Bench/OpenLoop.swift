import NIOCore
import NIOPosix

/// Posts at a fixed rate, independently of the answers.
///
/// The latency of a post counts from the time it was due, so a stall of the server counts for all posts that waited (no
/// coordinated omission). It writes and parses HTTP/1.1 itself: a client library would take CPU from the server on the
/// same cores.
struct OpenLoop: Sendable {
  let host: String
  let port: Int
  let path: String
  /// All header fields but `Content-Length`.
  let headers: [(name: String, value: String)]
  /// Posts per second, on all connections together.
  let rate: Int
  /// The number of posts.
  let count: Int
  /// The most posts in flight: one per HTTP/1.1 connection.
  ///
  /// The latency of a post includes its wait for a connection.
  let connections: Int

  /// Runs the load and returns the latencies in nanoseconds.
  ///
  /// `body` makes a post's body from its number and due time. Throws when a status is not 200 or 202, or a connection
  /// breaks.
  func run(on group: any EventLoopGroup, body: @escaping @Sendable (Int, NIODeadline) -> String) async throws -> [Int64]
  {
    let interval = 1_000_000_000 / Int64(rate)
    let head = "POST \(path) HTTP/1.1\r\n" + headers.map { "\($0.name): \($0.value)\r\n" }.joined() + "content-length: "
    var callers: [any Channel] = []
    var results: [EventLoopFuture<[Int64]>] = []
    // In half a second, so that connections are open before the first post is due.
    let start = NIODeadline.now() + .milliseconds(500)
    for number in 0..<connections {
      let dues = stride(from: number, to: count, by: connections).map {
        ($0, start + .nanoseconds(interval * Int64($0)))
      }
      let (channel, result) = try await ClientBootstrap(group: group)
        .channelOption(.tcpOption(.tcp_nodelay), value: 1)
        .connect(host: host, port: port) { channel in
          channel.eventLoop.makeCompletedFuture {
            let caller = Caller(
              dues: dues, head: head, body: body, result: channel.eventLoop.makePromise())
            try channel.pipeline.syncOperations.addHandler(caller)
            return (channel, caller.result.futureResult)
          }
        }
      callers.append(channel)
      results.append(result)
    }
    var times: [Int64] = []
    for result in results { times += try await result.get() }
    for channel in callers { try await channel.close() }
    return times
  }

  /// One connection: posts when the time has come and the last answer has arrived.
  private final class Caller: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    let result: EventLoopPromise<[Int64]>
    private let dues: [(number: Int, at: NIODeadline)]
    private let head: String
    private let body: @Sendable (Int, NIODeadline) -> String
    private var next = 0
    private var answer = HTTPAnswer()
    private var times: [Int64] = []

    init(
      dues: [(number: Int, at: NIODeadline)], head: String, body: @escaping @Sendable (Int, NIODeadline) -> String,
      result: EventLoopPromise<[Int64]>
    ) {
      self.dues = dues
      self.head = head
      self.body = body
      self.result = result
    }

    func channelActive(context: ChannelHandlerContext) { schedule(context) }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
      do {
        guard let status = try answer.read(unwrapInboundIn(data)) else { return }
        guard status == 200 || status == 202 else { throw BenchError("the front end answered \(status)") }
      } catch {
        return fail(error)
      }
      guard next < dues.count else { return fail(BenchError("the front end answered more than it was asked")) }
      times.append((NIODeadline.now() - dues[next].at).nanoseconds)
      next += 1
      schedule(context)
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
      fail(error)
      context.close(promise: nil)
    }

    func channelInactive(context: ChannelHandlerContext) {
      // This has no effect after the last answer.
      fail(BenchError("the front end closed a connection"))
    }

    private func schedule(_ context: ChannelHandlerContext) {
      guard next < dues.count else { return result.succeed(times) }
      guard dues[next].at > .now() else { return post(context) }
      context.eventLoop.assumeIsolated().scheduleTask(deadline: dues[next].at) { self.post(context) }
    }

    private func post(_ context: ChannelHandlerContext) {
      let body = body(dues[next].number, dues[next].at)
      var buffer = context.channel.allocator.buffer(capacity: head.utf8.count + body.utf8.count + 16)
      buffer.writeString(head)
      buffer.writeString("\(body.utf8.count)\r\n\r\n")
      buffer.writeString(body)
      context.writeAndFlush(wrapOutboundOut(buffer), promise: nil)
    }

    private func fail(_ error: any Error) { result.fail(error) }
  }
}

/// Parses HTTP/1.1 responses with a content length, one at a time.
struct HTTPAnswer {
  private static let endOfHead = Array("\r\n\r\n".utf8)
  private static let contentLength = Array("\r\ncontent-length:".utf8)

  private var bytes: [UInt8] = []

  /// Adds bytes; returns the status when the response is complete. Throws on anything else.
  mutating func read(_ buffer: ByteBuffer) throws(BenchError) -> Int? {
    bytes.append(contentsOf: buffer.readableBytesView)
    guard let end = Self.end(of: Self.endOfHead, in: bytes) else { return nil }
    guard let status = Self.number(in: bytes[..<end].dropFirst("HTTP/1.1 ".utf8.count)),
      let field = Self.end(of: Self.contentLength, in: bytes), field < end,
      let length = Self.number(in: bytes[field..<end])
    else { throw BenchError("the front end answered something that is not HTTP, or of no known length") }
    guard bytes.count >= end + length else { return nil }
    guard bytes.count == end + length else { throw BenchError("the front end answered more than it was asked") }
    bytes.removeAll(keepingCapacity: true)
    return status
  }

  /// The number after any spaces.
  private static func number(in bytes: ArraySlice<UInt8>) -> Int? {
    let digits = bytes.drop { $0 == UInt8(ascii: " ") }.prefix { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
    return Int(String(decoding: digits, as: UTF8.self))
  }

  /// The end of the first occurrence of a lower-case mark.
  private static func end(of mark: [UInt8], in bytes: [UInt8]) -> Int? {
    guard bytes.count >= mark.count else { return nil }
    for start in 0...(bytes.count - mark.count) where bytes[start] == mark[0] {
      var length = 1
      while length < mark.count, lowercased(bytes[start + length]) == mark[length] { length += 1 }
      if length == mark.count { return start + length }
    }
    return nil
  }

  private static func lowercased(_ byte: UInt8) -> UInt8 {
    (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte) ? byte | 0x20 : byte
  }
}
