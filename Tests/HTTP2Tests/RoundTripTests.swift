import HTTP2
import NIOCore
import NIOPosix
import NIOSSL
import Support
import Synchronization
import Testing

@Suite(.timeLimit(.minutes(1))) struct RoundTripTests {
  @Test func everyRequestIsAnsweredOnce() async throws {
    try await PoolFixture.run(pool: { $0.maximumConnections = 3 }) { request, responder in
      PoolFixture.answer(
        request, responder, body: Array("\(request.path) \(request.method) \(request.authority)".utf8) + request.body)
    } _: { fixture in
      for start in stride(from: 0, to: 5000, by: 250) { fixture.submit(tickets: start..<(start + 250)) }
      let completions = try await fixture.completions.wait(count: 5000)
      #expect(Set(completions.map(\.ticket)).count == 5000)
      #expect(completions.count == 5000)
      for completion in completions {
        let response = try completion.result.get()
        #expect(response.status == 200)
        #expect(response.headers["x-ticket"] == "\(completion.ticket)")
        #expect(String(decoding: response.body, as: UTF8.self) == "/\(completion.ticket) POST localhost{}")
      }
    }
  }

  @Test func fieldsArriveAsSent() async throws {
    let seen = Probe<HTTP2ServerRequest>()
    try await PoolFixture.run { request, responder in
      seen.add(request)
      responder.respond(status: 410, headers: ["x-other": "1", "x-ticket": "kept"])
    } _: { fixture in
      var request = PoolFixture.request(1, body: [])
      request.headers.append("authorization", "bearer secret", indexing: .never)
      for _ in 1...3 {
        let response = try await fixture.pool.execute(request)
        #expect(response.status == 410)
        #expect(response.headers.map(\.name) == ["x-ticket"])
        #expect(response.body.isEmpty)
      }
      for request in seen.values {
        #expect(request.headers.map(\.name) == ["x-shared", "x-ticket", "authorization"])
        #expect(request.headers["authorization"] == "bearer secret")
        #expect(request.body.isEmpty)
      }
    }
  }

  @Test func fieldsArriveAsSentWithAnyTableSize() async throws {
    // Names and values that repeat or do not, are too large for the table, or evict everything from it; blocks of
    // several frames.
    var random = SeededGenerator(seed: 11)
    let requests = (0..<2000).map { ticket in
      var request = PoolFixture.request(ticket)
      request.shared.append("x-class", "\(ticket / 50 % 12)")
      for _ in 0..<Int.random(in: 0...3, using: &random) {
        let length = [1, 1, 12, 12, 12, 60, 60, 300, 1500, 20_000][Int.random(in: 0..<10, using: &random)]
        request.headers.append(
          "x-\(Int.random(in: 0..<20, using: &random))",
          String(repeating: Character(UnicodeScalar(UInt8.random(in: 97...122, using: &random))), count: length),
          indexing: [HPACKIndexing.incremental, .never, .withoutIndexing][Int.random(in: 0..<3, using: &random)])
      }
      return request
    }
    let seen = Probe<HTTP2ServerRequest>()
    try await PoolFixture.run(server: { $0.maximumHeaderListSize = 1 << 20 }) { request, responder in
      seen.add(request)
      PoolFixture.answer(request, responder)
    } _: { fixture in
      for start in stride(from: 0, to: requests.count, by: 100) { fixture.submit(Array(requests[start..<start + 100])) }
      let completions = try await fixture.completions.wait(count: requests.count)
      #expect(completions.allSatisfy { $0.status == 200 })
    }
    for request in seen.values {
      let sent = requests[try #require(Int(request.path.dropFirst()))]
      let fields = sent.shared.dropFirst(3) + Array(sent.headers.dropFirst())
      #expect(fields.elementsEqual(request.headers) { $0 == $1 })
    }
  }

  @Test func oneCallPerTurnAndSubmission() async throws {
    let held = Mutex<[(request: HTTP2ServerRequest, responder: HTTP2Responder)]>([])
    try await PoolFixture.run { request, responder in
      // All in one turn of the server's event loop, so that the answers arrive together.
      let ready = held.withLock { held in
        held.append((request, responder))
        return held.count == 100 ? held : []
      }
      for (request, responder) in ready { PoolFixture.answer(request, responder) }
    } _: { fixture in
      let calls = Probe<[UInt64]>()
      fixture.pool.submit((0..<100).map { PoolFixture.request($0) }) { calls.add($0.map(\.ticket)) }
      let batches = try await calls.wait { $0.reduce(0) { $0 + $1.count } >= 100 }
      #expect(batches.flatMap(\.self).sorted() == Array(0..<100))
      #expect(batches.count < 50)
    }
  }

  @Test func worksInCleartext() async throws {
    try await PoolFixture.run {
      $0.tls = nil
    } pool: {
      $0.tls = nil
    } handler: { request, responder in
      PoolFixture.answer(request, responder)
    } _: { fixture in
      let response = try await fixture.pool.execute(PoolFixture.request(7))
      #expect(response.headers["x-ticket"] == "7")
    }
  }

  @Test func serverWithAnotherNameIsRefused() async throws {
    // NIOSSL accepts a certificate with the peer's address, so this one must not have it.
    let certificates = try TestCertificates(coversAddress: false)
    let (serverTLS, clientTLS) = (try certificates.serverTLS(), try certificates.clientTLS())
    try await PoolFixture.run {
      $0.tls = serverTLS
    } pool: {
      $0.serverName = "example.org"
      $0.tls = clientTLS
    } handler: { request, responder in
      PoolFixture.answer(request, responder)
    } _: { fixture in
      let events = try await fixture.events.wait(count: 1)
      guard case .failed(_, let error, _) = events[0] else {
        Issue.record("expected a failed connection, got \(events[0])")
        return
      }
      #expect(error.code == .tlsFailed)
    }
  }

  @Test func unknownAuthorityIsRefused() async throws {
    let stranger = try TestCertificates().serverTLS()
    try await PoolFixture.run(server: { $0.tls = stranger }) { request, responder in
      PoolFixture.answer(request, responder)
    } _: { fixture in
      let events = try await fixture.events.wait(count: 1)
      guard case .failed(_, let error, _) = events[0] else {
        Issue.record("expected a failed connection, got \(events[0])")
        return
      }
      #expect(error.code == .tlsFailed)
    }
  }

  @Test func verifiesAnAddress() async throws {
    try await PoolFixture.run(pool: { $0.serverName = nil }) { request, responder in
      PoolFixture.answer(request, responder)
    } _: { fixture in
      let response1 = try await fixture.pool.execute(PoolFixture.request(1))
      #expect(response1.status == 200)
    }
  }

  @Test func requiresALPN() async throws {
    let tls = try NIOSSLContext(configuration: PoolFixture.certificates.get().serverTLS())
    let listener = try await ServerBootstrap(group: PoolFixture.group)
      .childChannelInitializer { channel in
        channel.eventLoop.makeCompletedFuture {
          try channel.pipeline.syncOperations.addHandler(NIOSSLServerHandler(context: tls))
        }
      }
      .bind(host: "127.0.0.1", port: 0).get()
    let events = Probe<HTTP2PoolEvent>()
    let pool = try PoolFixture.pool(port: #require(listener.localAddress?.port), events: events) { _ in }
    async let run: Void = pool.run()
    let first = try await events.wait(count: 1)[0]
    if case .failed(_, let error, _) = first {
      #expect(error.code == .protocolNotNegotiated)
    } else {
      Issue.record("expected a failed connection, got \(first)")
    }
    await pool.close(timeout: .zero)
    await run
    try await listener.close()
  }

  @Test func silentServerIsAbandoned() async throws {
    let listener = try await ServerBootstrap(group: PoolFixture.group).bind(host: "127.0.0.1", port: 0).get()
    let events = Probe<HTTP2PoolEvent>()
    let pool = try PoolFixture.pool(port: #require(listener.localAddress?.port), events: events) {
      $0.handshakeTimeout = .milliseconds(50)
    }
    async let run: Void = pool.run()
    let first = try await events.wait(count: 1)[0]
    if case .failed(_, let error, _) = first {
      #expect(error.code == .handshakeTimeout)
    } else {
      Issue.record("expected a failed connection, got \(first)")
    }
    await pool.close(timeout: .zero)
    await run
    try await listener.close()
  }
}
