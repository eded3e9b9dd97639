import NIOCore
import NIOPosix

/// Posts at a fixed rate, whatever the answers do: as independent callers would. Each post's time counts from the
/// moment it was due, so that a server that stalls is charged for everything that had to wait for it.
///
/// Writes and reads HTTP/1.1 itself: what a client's library costs would be taken from the server, which shares the
/// cores.
struct OpenLoop: Sendable {
  let host: String
  let port: Int
  let path: String
  /// All header fields but `Content-Length`.
  let headers: [(name: String, value: String)]
  /// Posts a second, by all connections together.
  let rate: Int
  /// Posts altogether.
  let count: Int
  /// The most posts at the same time: an HTTP/1.1 connection carries one. What is due while its connection waits for an
  /// answer waits, too, and that counts as its time.
  let connections: Int

  /// Runs it. `body` makes the body of a post, from its number and the time of the monotonic clock when it is due.
  /// Gives the times to the answers, in nanoseconds. Throws when an answer is not 200 or 202, or a connection breaks.
  func run(on group: any EventLoopGroup, body: @escaping @Sendable (Int, NIODeadline) -> String) async throws -> [Int64]
  {
    let interval = 1_000_000_000 / Int64(rate)
    let head = "POST \(path) HTTP/1.1\r\n" + headers.map { "\($0.name): \($0.value)\r\n" }.joined() + "content-length: "
    var callers: [any Channel] = []
    var results: [EventLoopFuture<[Int64]>] = []
    // A little later than now, so that no post is due before its connection is there.
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

  /// One connection: posts when it is time and the answer before has come.
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
      // After the last answer this changes nothing.
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
