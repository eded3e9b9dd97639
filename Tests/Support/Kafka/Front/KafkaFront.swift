import NIOCore
import NIOPosix
package import NIOSSL
import Synchronization

/// A front before the embedded cluster that does what real brokers do and it does not: TLS, SASL, and the
/// administration of topics' settings.
///
/// It forwards all other requests, and puts its own addresses into the answers that name brokers.
package final class KafkaFront: Sendable {
  /// The addresses for clients, `localhost:port`, separated by commas.
  package let bootstrapServers: String
  /// The accounts and tokens; nil if clients need not authenticate.
  package let accounts: KafkaAccounts?
  /// The settings of the topics.
  package let settings: KafkaTopicSettings

  private let listeners: [any Channel]
  private let clients: Clients

  /// Listens, one port for each broker of `kafka`.
  package static func start(
    before kafka: TestKafka, tls: TLSConfiguration? = nil, accounts: KafkaAccounts? = nil,
    settings: KafkaTopicSettings = KafkaTopicSettings()
  ) async throws -> KafkaFront {
    let tls = try tls.map { try NIOSSLContext(configuration: $0) }
    let clients = Clients()
    let brokers = kafka.bootstrapServers.split(separator: ",").map { Int($0.split(separator: ":").last ?? "") ?? 0 }
    var listeners: [any Channel] = []
    for broker in brokers {
      let listener = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
        .childChannelInitializer { channel in
          channel.eventLoop.makeCompletedFuture {
            clients.add(channel)
            if let tls { try channel.pipeline.syncOperations.addHandler(NIOSSLServerHandler(context: tls)) }
            try channel.pipeline.syncOperations.addHandler(ByteToMessageHandler(FrameDecoder()))
            try channel.pipeline.syncOperations.addHandler(
              FrontConnection(
                broker: broker, ports: clients.ports.withLock(\.self), accounts: accounts, settings: settings,
                kafka: kafka))
          }
        }
        .bind(host: "127.0.0.1", port: 0).get()
      listeners.append(listener)
      clients.ports.withLock { $0[Int32(broker)] = Int32(listener.localAddress?.port ?? 0) }
    }
    return KafkaFront(accounts: accounts, settings: settings, listeners: listeners, clients: clients)
  }

  private init(accounts: KafkaAccounts?, settings: KafkaTopicSettings, listeners: [any Channel], clients: Clients) {
    (self.accounts, self.settings) = (accounts, settings)
    (self.listeners, self.clients) = (listeners, clients)
    bootstrapServers = listeners.map { "localhost:\($0.localAddress?.port ?? 0)" }.joined(separator: ",")
  }

  /// Stops listening and closes all connections.
  package func close() async {
    for listener in listeners { try? await listener.close() }
    await dropConnections()
  }

  /// Closes all connections; clients may connect again.
  package func dropConnections() async {
    for client in clients.take() { try? await client.close() }
  }

  /// The open connections, and the front's port by the broker's.
  private final class Clients: Sendable {
    let ports = Mutex<[Int32: Int32]>([:])
    private let channels = Mutex<[any Channel]>([])

    func add(_ channel: any Channel) { channels.withLock { $0.append(channel) } }

    func take() -> [any Channel] {
      channels.withLock { channels in
        defer { channels = [] }
        return channels
      }
    }
  }
}

/// One client's connection to a ``KafkaFront``, and its own connection to the broker behind it.
final class FrontConnection: ChannelInboundHandler {
  typealias InboundIn = ByteBuffer
  typealias OutboundOut = ByteBuffer

  /// The port of the broker.
  private let broker: Int
  /// The front's port by the broker's.
  let ports: [Int32: Int32]
  let settings: KafkaTopicSettings
  let kafka: TestKafka
  private var session: SASLSession?
  /// Whether a record waits for its acknowledgement, and so everything behind it.
  private var isMuted = false
  /// Nil until it is connected.
  private var upstream: (any Channel)?
  private var waiting: [ByteBuffer] = []
  /// The requests that wait for the broker's answers, by correlation id.
  var forwarded: [Int32: RequestHead] = [:]

  init(
    broker: Int, ports: [Int32: Int32], accounts: KafkaAccounts?, settings: KafkaTopicSettings, kafka: TestKafka
  ) {
    (self.broker, self.ports, self.settings, self.kafka) = (broker, ports, settings, kafka)
    session = accounts.map { SASLSession(accounts: $0) }
  }

  func channelActive(context: ChannelHandlerContext) {
    let own = NIOLoopBound((self, context), eventLoop: context.eventLoop)
    ClientBootstrap(group: context.eventLoop)
      .channelInitializer { channel in
        channel.eventLoop.makeCompletedFuture {
          try channel.pipeline.syncOperations.addHandler(ByteToMessageHandler(FrameDecoder()))
          let (connection, client) = own.value
          try channel.pipeline.syncOperations.addHandler(BrokerSide(connection: connection, client: client.channel))
        }
      }
      .connect(host: "127.0.0.1", port: broker)
      .whenComplete { result in
        let (connection, client) = own.value
        guard case .success(let upstream) = result else { return client.close(promise: nil) }
        connection.upstream = upstream
        for request in connection.waiting { upstream.writeAndFlush(request, promise: nil) }
        connection.waiting = []
      }
    context.fireChannelActive()
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    let request = unwrapInboundIn(data)
    guard let head = RequestHead(request) else { return context.close(promise: nil) }
    if let answer = session?.answer(head) ?? administer(head) {
      return context.writeAndFlush(wrapOutboundOut(answer.framed), promise: nil)
    }
    // A real broker closes the connection of a client that has not authenticated.
    guard session?.permits(head) != false else { return context.close(promise: nil) }
    if head.key == Key.produce.rawValue, settings.holdsAcknowledgements { isMuted = true }
    guard !isMuted else { return }
    if head.key == Key.metadata.rawValue {
      // A topic that exists already is found.
      do { try settings.countMetadata() } catch {}
    }
    forwarded[head.correlation] = head
    guard let upstream else { return waiting.append(request.framed) }
    upstream.writeAndFlush(request.framed, promise: nil)
  }

  func channelInactive(context: ChannelHandlerContext) { upstream?.close(promise: nil) }

  /// Failed handshakes and broken connections concern only the client.
  func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }

  /// The broker's answers on the way to the client.
  private final class BrokerSide: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer

    private let connection: FrontConnection
    private let client: any Channel

    init(connection: FrontConnection, client: any Channel) { (self.connection, self.client) = (connection, client) }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
      client.writeAndFlush(connection.rewrite(unwrapInboundIn(data)).framed, promise: nil)
    }

    func channelInactive(context: ChannelHandlerContext) { client.close(promise: nil) }
  }
}

/// The beginning of a request.
struct RequestHead: Sendable {
  let key: Int16
  let version: Int16
  let correlation: Int32
  /// What follows the head; only valid for requests without tagged fields.
  var body: ByteBuffer

  init?(_ request: ByteBuffer) {
    body = request
    guard let key: Int16 = body.readInteger(), let version: Int16 = body.readInteger(),
      let correlation: Int32 = body.readInteger()
    else { return nil }
    (self.key, self.version, self.correlation) = (key, version, correlation)
    _ = body.readKafkaString()
  }

  /// The beginning of the answer.
  var answer: ByteBuffer {
    var answer = ByteBuffer()
    answer.writeInteger(correlation)
    return answer
  }
}

private struct FrameDecoder: ByteToMessageDecoder {
  typealias InboundOut = ByteBuffer

  mutating func decode(context: ChannelHandlerContext, buffer: inout ByteBuffer) throws -> DecodingState {
    guard let frame = buffer.readLengthPrefixedSlice(as: Int32.self) else { return .needMoreData }
    context.fireChannelRead(wrapInboundOut(frame))
    return .continue
  }
}

extension ByteBuffer {
  /// The message after its length.
  var framed: ByteBuffer {
    var frame = ByteBuffer()
    frame.writeInteger(Int32(readableBytes))
    frame.writeImmutableBuffer(self)
    return frame
  }

  /// A text with a length of two bytes; nil for null.
  mutating func readKafkaString() -> String? {
    guard let count: Int16 = readInteger(), count >= 0 else { return nil }
    return readString(length: Int(count))
  }

  mutating func writeKafkaString(_ text: String?) {
    guard let text else { return _ = writeInteger(Int16(-1)) }
    writeInteger(Int16(text.utf8.count))
    writeString(text)
  }
}
