import HTTP2
import NIOCore
import NIOPosix
import Testing

/// Limits that the server sets its clients.
@Suite(.timeLimit(.minutes(1))) struct ServerLimitTests {
  @Test(arguments: [true, false]) func silentClientIsDisconnected(isSecure: Bool) async throws {
    try await PoolFixture.run(
      server: {
        // The pool's own connection needs less.
        $0.handshakeTimeout = .seconds(4)
        if !isSecure { $0.tls = nil }
      },
      pool: { if !isSecure { $0.tls = nil } }
    ) { request, responder in
      PoolFixture.answer(request, responder)
    } _: { fixture in
      let first = try await fixture.pool.execute(PoolFixture.request(1))
      #expect(first.status == 200)
      let silent = try await ClientBootstrap(group: PoolFixture.group)
        .connect(host: "127.0.0.1", port: #require(fixture.server.boundPort)).get()
      try await silent.closeFuture.get()
      // A client that sent its SETTINGS in time may then be silent for as long as it likes.
      let second = try await fixture.pool.execute(PoolFixture.request(2))
      #expect(second.status == 200)
      #expect(fixture.events.values.count { if case .opened = $0 { true } else { false } } == 1)
    }
  }

  @Test func clientThatReadsNoAnswersIsNotRead() async throws {
    let total = 3000
    let asked = Probe<Int32>()
    var configuration = HTTP2ServerConfiguration(tls: nil)
    configuration.maximumConcurrentStreams = total
    let large = String(repeating: "x", count: 8000)
    // All connections share one event loop, so an answer to another client shows that the server had its turn.
    let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
    let server = HTTP2Server(configuration: configuration, eventLoopGroup: group, logger: PoolFixture.logger) {
      request, responder in
      guard request.authority == "greedy" else { return PoolFixture.answer(request, responder) }
      asked.add(request.streamID)
      var headers = HTTP2Headers()
      headers.append("x-large", large, indexing: .withoutIndexing)
      responder.respond(status: 200, headers: headers)
    }
    try await server.start()
    let port = try #require(server.boundPort)
    let greedy = try await ClientBootstrap(group: PoolFixture.group)
      .channelOption(.autoRead, value: false)
      .channelOption(.socketOption(.so_rcvbuf), value: 4096)
      .connect(host: "127.0.0.1", port: port).get()
    greedy.writeAndFlush(Self.requests(total), promise: nil)
    try await asked.wait(count: 1)
    let pool = try PoolFixture.pool(port: port, events: Probe()) { $0.tls = nil }
    let running = Task { await pool.run() }
    for ticket in 0..<200 {
      let response = try await pool.execute(PoolFixture.request(ticket))
      #expect(response.status == 200)
    }
    // The system buffers some megabytes of answers, which are hundreds; the server reads a quarter of a megabyte at a
    // time.
    #expect(asked.values.count < total)
    // It continues as soon as answers are read.
    try await greedy.setOption(.autoRead, value: true).get()
    try await asked.wait(count: total)
    try await greedy.close()
    await pool.close(timeout: .zero)
    await running.value
    await server.close()
    try await group.shutdownGracefully()
  }

  /// The bytes of a client that makes this many requests of a kilobyte (RFC 9113 §3.4, §4.1 and §6; RFC 7541 §6.2.2).
  private static func requests(_ count: Int) -> ByteBuffer {
    var bytes = ByteBuffer(string: "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
    func append(type: UInt8, flags: UInt8, stream: Int, payload: [UInt8]) {
      bytes.writeMultipleIntegers(UInt8(0), UInt16(payload.count), type, flags, UInt32(stream))
      bytes.writeBytes(payload)
    }
    append(type: 4, flags: 0, stream: 0, payload: [])
    // GET and http from the static table, then plain `:path`, of 127 + 0x69 + (6 << 7) bytes, and `:authority`.
    let path = [UInt8](repeating: UInt8(ascii: "/"), count: 1000)
    let fields = [0x82, 0x86, 0x04, 0x7F, 0xE9, 0x06] + path + [0x01, 6] + Array("greedy".utf8)
    // END_STREAM and END_HEADERS.
    for index in 0..<count { append(type: 1, flags: 5, stream: 2 * index + 1, payload: fields) }
    return bytes
  }
}
