import NIOCore
import NIOPosix
import Synchronization

/// A cleartext server that sends the same frames to every connection, whatever the request, and leaves the connection
/// open unless told otherwise.
final class RawServer: Sendable {
  /// A frame (RFC 9113 section 4.1).
  struct Frame {
    var type: UInt8
    var stream: UInt32 = 0
    var payload: [UInt8] = []

    /// SETTINGS that change nothing.
    static let settings = Self(type: 4)
    /// A WINDOW_UPDATE by 0, which is a connection error (section 6.9).
    static let nonsense = Self(type: 8, payload: [0, 0, 0, 0])
    /// GOAWAY with NO_ERROR, before any stream.
    static let goAway = Self(type: 7, payload: [0, 0, 0, 0, 0, 0, 0, 0])
  }

  private final class Counter: Sendable {
    let connections = Mutex(0)
  }

  private final class Greeting: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private let bytes: ByteBuffer
    private var rest: Int

    init(bytes: ByteBuffer, limit: Int) { (self.bytes, rest) = (bytes, limit) }

    func channelActive(context: ChannelHandlerContext) { context.writeAndFlush(wrapOutboundOut(bytes), promise: nil) }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
      rest -= unwrapInboundIn(data).readableBytes
      if rest <= 0 { context.close(promise: nil) }
    }
  }

  private let channel: any Channel
  private let counter: Counter

  /// The port it listens on.
  var port: Int { channel.localAddress?.port ?? 0 }
  /// The number of connections so far.
  var connectionCount: Int { counter.connections.withLock { $0 } }

  /// Listens on a kernel-chosen port. A server that does not read has small receive buffers. A connection is closed
  /// after it has received `limit` bytes.
  init(_ frames: [Frame], reads: Bool = true, limit: Int = .max) async throws {
    var bytes = ByteBuffer()
    for frame in frames {
      bytes.writeMultipleIntegers(UInt8(0), UInt16(frame.payload.count), frame.type, UInt8(0), frame.stream)
      bytes.writeBytes(frame.payload)
    }
    let greeting = bytes
    let counter = Counter()
    channel = try await ServerBootstrap(group: PoolFixture.group)
      .serverChannelOption(.socketOption(.so_rcvbuf), value: 4096)
      .childChannelOption(.autoRead, value: reads)
      .childChannelInitializer { channel in
        counter.connections.withLock { $0 += 1 }
        return channel.eventLoop.makeCompletedFuture {
          try channel.pipeline.syncOperations.addHandler(Greeting(bytes: greeting, limit: limit))
        }
      }
      .bind(host: "127.0.0.1", port: 0).get()
    self.counter = counter
  }

  func close() async throws { try await channel.close() }
}
