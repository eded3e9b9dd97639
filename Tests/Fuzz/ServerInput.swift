import HTTPTypes
import NIOCore
import NIOEmbedded

@testable import HTTPServer

/// A caller's connection that receives anything, in two reads, and answers each request that it hands over.
struct ServerInput {
  private static let times = ConnectionLife.Limits(
    firstRequestTimeout: .seconds(10), idleTimeout: .seconds(10), writeTimeout: .seconds(10), slowReadersGiveWay: false,
    drainTimeout: .seconds(1))
  /// The preface of an HTTP/2 client and its empty SETTINGS, without which nothing else is read.
  private static let preface = Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8) + [0, 0, 0, 4, 0, 0, 0, 0, 0]

  private let channel = EmbeddedChannel()
  private let connection: ClientConnection
  private let life: ConnectionLife
  private let table = ConnectionTable(maximum: 8, maximumPerAddress: 8)
  private let budgets = ByteBudgets(
    bodies: ByteBudget(limit: 131_072, largest: 65_536), answers: ByteBudget(limit: 262_144, largest: 131_072))

  private init() {
    connection = ClientConnection(channel: channel, proxies: TrustedProxies(), requiresProxy: false)
    life = ConnectionLife(
      limits: Self.times, connection: connection, table: table, isWelcome: table.add(connection))
  }

  /// The first byte divides the rest into the two reads.
  static func receiveHTTP1(_ input: [UInt8]) { ServerInput().receiveHTTP1(input) }

  /// The first byte divides the rest into the two reads.
  static func receiveHTTP2(_ input: [UInt8]) { ServerInput().receiveHTTP2(input) }

  private func receiveHTTP1(_ input: [UInt8]) {
    Self.comparePieces(input.dropFirst())
    let requests = HTTP1Connection(
      connection, parser: HTTP1Parser(limits: Self.parserLimits),
      limits: HTTP1Connection.Limits(wholeBodySize: 4096, bodyTimeout: .seconds(10), maximumDiscard: 65_536),
      budgets: budgets, life: life, application: Answering())
    // Fails only on a closed channel.
    guard (try? channel.pipeline.syncOperations.addHandler(requests)) != nil else { return }
    receive([], input) {
      while requests.handover.take() != nil {
        _ = requests.answer(Self.head, body: ByteBuffer(bytes: [1, 2]), to: 0)
      }
    }
    precondition(requests.context == nil, "a closed connection keeps its handlers")
  }

  private static let parserLimits = HTTP1Parser.Limits(fieldSize: 4096, size: 8192, count: 64)

  /// What the parser reads must not depend on the pieces that it gets.
  private static func comparePieces(_ input: ArraySlice<UInt8>) {
    func read(_ size: Int) -> (heads: [String], body: [UInt8], fault: RequestFault?) {
      var (parser, buffer, rest) = (HTTP1Parser(limits: parserLimits), ByteBuffer(), input)
      var (heads, body): ([String], [UInt8]) = ([], [])
      do throws(RuleViolation) {
        while !rest.isEmpty {
          buffer.writeBytes(rest.prefix(size))
          rest = rest.dropFirst(size)
          while let part = try parser.next(&buffer) {
            switch part {
            case .head(let head): heads.append("\(head.method) \(head.target) \(head.fields.all) \(body.count)")
            case .body(let bytes): body += bytes.readableBytesView
            case .end: heads.append("end \(body.count)")
            }
          }
        }
      } catch {
        return (heads, body, error.fault)
      }
      return (heads, body, nil)
    }
    precondition(read(1) == read(.max), "the result depends on the pieces")
  }

  private func receiveHTTP2(_ input: [UInt8]) {
    let limits = HTTP2Connection.Limits(
      head: HTTP2Head.Limits(fieldSize: 4096, size: 8192, count: 64), bodySize: 65_536, bodyTimeout: .seconds(10),
      writeTimeout: .seconds(10))
    let requests = HTTP2Connection(
      connection, limits: limits, budgets: budgets, life: life, table: table,
      application: Answering())
    // Fails only on a closed channel.
    guard (try? channel.pipeline.syncOperations.addHandler(requests)) != nil else { return }
    receive(Self.preface, input) {
      while let (_, streamID) = requests.handover.take() {
        guard let stream = requests.streams[streamID] else {
          requests.handover.finished()
          continue
        }
        stream.isRunning = true
        if streamID % 8 == 3, requests.begin(Self.head, to: Int(streamID)) {
          requests.finish(Int(streamID))
          continue
        }
        // Every other stream gets an answer that is larger than a client's first window, while the budget lasts.
        let body = ByteBuffer(repeating: 0x61, count: streamID % 4 == 1 ? 100_000 : 2)
        if !requests.answer(Self.head, body: body, to: Int(streamID)) {
          _ = requests.answer(Self.head, body: ByteBuffer(), to: Int(streamID))
        }
      }
      precondition(requests.handover.waitingBytes >= 0, "more bytes of answers are sent than were given")
      precondition(requests.streams.count <= HTTP2Connection.maximumStreams, "more streams are open than permitted")
    }
    precondition(requests.context == nil, "a closed connection keeps its handlers")
  }

  private static let head = HTTPResponse(status: .ok)

  /// Has the connection read the bytes, `answer` after each read, and closes it.
  private func receive(_ beginning: [UInt8], _ input: [UInt8], answer: () -> Void) {
    let rest = input.dropFirst()
    let cut = rest.startIndex + rest.count * Int(input.first ?? 0) / 256
    for piece in [beginning[...], rest[..<cut], rest[cut...]] where !piece.isEmpty {
      channel.pipeline.fireChannelRead(ByteBuffer(bytes: piece))
      channel.pipeline.fireChannelReadComplete()
      // The time that an incomplete request of HTTP/2 waits for its body.
      channel.embeddedEventLoop.advanceTime(by: HTTP2Connection.bodyDelay)
      answer()
      channel.embeddedEventLoop.run()
    }
    life.closeNow()
    // Removes the handlers, which hold the channel.
    channel.embeddedEventLoop.run()
    precondition(budgets.bodies.taken == 0, "the bodies of a closed connection are still held")
    precondition(budgets.answers.taken == 0, "the answers of a closed connection are still held")
  }
}

/// Has every request answered later.
private struct Answering: Application {
  func begin(_ exchange: inout Exchange) -> Reply { .later { _ in Answer(status: .ok) } }

  func answer(to fault: RequestFault, requestID: String?) -> Answer { Answer(status: .badRequest) }
}
