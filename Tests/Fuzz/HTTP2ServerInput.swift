import HTTPTypes
import NIOCore
import NIOEmbedded

@testable import FrontEnd

/// A caller's HTTP/2 connection that receives anything, in two reads, and answers each request that it hands over.
enum HTTP2ServerInput {
  private static let limits = HTTP2Connection.Limits(
    head: HTTP2Head.Limits(fieldSize: 4096, size: 8192, count: 64), bodySize: 65_536, bodyTimeout: .seconds(10),
    writeTimeout: .seconds(10))
  private static let times = ConnectionLife.Limits(
    firstRequestTimeout: .seconds(10), idleTimeout: .seconds(10), writeTimeout: .seconds(10), drainTimeout: .seconds(1))
  /// The preface of a client and its empty SETTINGS, without which nothing else is read.
  private static let beginning = Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8) + [0, 0, 0, 4, 0, 0, 0, 0, 0]

  /// The first byte divides the rest into the two reads.
  static func receive(_ input: [UInt8]) {
    let channel = EmbeddedChannel()
    let connection = ClientConnection(channel: channel, proxies: TrustedProxies(), requiresProxy: false)
    let table = ConnectionTable(maximum: 8, maximumPerAddress: 8)
    let budget = BodyBudget(limit: 131_072, largest: 65_536)
    let life = ConnectionLife(limits: times, connection: connection, table: table, isWelcome: table.add(connection))
    let requests = HTTP2Connection(
      connection, limits: limits, budget: budget, life: life, table: table, isSecure: false, direct: nil)
    // Fails only on a closed channel.
    guard (try? channel.pipeline.syncOperations.addHandler(requests)) != nil else { return }
    let rest = input.dropFirst()
    let cut = rest.startIndex + rest.count * Int(input.first ?? 0) / 256
    for piece in [beginning[...], rest[..<cut], rest[cut...]] {
      channel.pipeline.fireChannelRead(ByteBuffer(bytes: piece))
      channel.pipeline.fireChannelReadComplete()
      // The time that an incomplete request waits for its body.
      channel.embeddedEventLoop.advanceTime(by: HTTP2Connection.bodyDelay)
      answer(requests)
      channel.embeddedEventLoop.run()
    }
    precondition(requests.streams.count <= HTTP2Connection.maximumStreams, "more streams are open than permitted")
    life.closeNow()
    // Removes the handlers, which hold the channel.
    channel.embeddedEventLoop.run()
    precondition(!channel.isActive && requests.context == nil, "a closed connection keeps its handlers")
    precondition(budget.taken == 0, "the bodies of a closed connection are still held")
  }

  private static func answer(_ requests: HTTP2Connection) {
    while let (_, streamID) = requests.handover.take() {
      guard let stream = requests.streams[streamID] else {
        requests.handover.finished()
        continue
      }
      stream.isRunning = true
      // Every other stream gets an answer that is larger than a client's first window.
      let body = ByteBuffer(repeating: 0x61, count: streamID % 4 == 1 ? 100_000 : 2)
      requests.answer(HTTPResponse(status: .ok), body: body, to: streamID)
    }
    precondition(requests.handover.waitingBytes >= 0, "more bytes of answers are sent than were given")
  }
}
