import HTTP2
import Testing

/// Peers that violate the protocol, or leave without having done anything.
@Suite(.timeLimit(.minutes(1))) struct BrokenPeerTests {
  /// Runs `body` with a pool that connects to the server.
  private func run(
    _ server: RawServer, configure: (inout HTTP2PoolConfiguration) -> Void = { _ in },
    _ body: (HTTP2ConnectionPool, Probe<HTTP2PoolEvent>) async throws -> Void
  ) async throws {
    let events = Probe<HTTP2PoolEvent>()
    let pool = try PoolFixture.pool(port: server.port, events: events) {
      $0.tls = nil
      // Longer than the test: a second connection would be one too many.
      $0.reconnectBackoff = .seconds(100)
      $0.maximumReconnectBackoff = .seconds(100)
      configure(&$0)
    }
    async let running: Void = pool.run()
    let result: Result<Void, any Error>
    do { result = .success(try await body(pool, events)) } catch { result = .failure(error) }
    await pool.close(timeout: .zero)
    await running
    try await server.close()
    try result.get()
  }

  /// How the first connection ended.
  private func end(_ events: Probe<HTTP2PoolEvent>) async throws -> HTTP2ConnectionError? {
    let all = try await events.wait {
      $0.contains { if case .closed(connection: 1, _) = $0 { true } else if case .failed = $0 { true } else { false } }
    }
    for event in all {
      if case .closed(connection: 1, let error) = event { return error }
      if case .failed(connection: 1, let error, _) = event { return error }
    }
    return nil
  }

  @Test func protocolViolationEndsTheConnection() async throws {
    try await run(try await RawServer([.settings, .nonsense])) { _, events in
      let error = try await end(events)
      #expect(error?.code == .protocolViolation)
    }
  }

  @Test func reconnectsWithBackoffToAServerThatRefusesEverybody() async throws {
    let server = try await RawServer([.settings, .goAway])
    try await run(server) { pool, events in
      let error = try await end(events)
      #expect(error?.code == .closedByPeer)
      await #expect {
        try await pool.execute(PoolFixture.request(1, timeout: .milliseconds(100)))
      } throws: { ($0 as? HTTP2RequestError)?.message.contains("GOAWAY") == true }
      #expect(server.connectionCount == 1)
    }
  }

  @Test func reconnectsWithBackoffAfterEnhanceYourCalm() async throws {
    try await PoolFixture.run(pool: {
      $0.reconnectBackoff = .seconds(100)
      $0.maximumReconnectBackoff = .seconds(100)
    }) { request, responder in
      responder.connection.goAway(code: .enhanceYourCalm)
      PoolFixture.answer(request, responder)
    } _: { fixture in
      fixture.submit(tickets: 0..<1)
      try await fixture.completions.wait(count: 1)
      fixture.submit(tickets: 1..<2, timeout: .milliseconds(100))
      let completions = try await fixture.completions.wait(count: 2)
      #expect(completions[0].status == 200)
      #expect(completions[1].error?.code == .deadlineExceeded)
      #expect(!fixture.events.values.contains { if case .opened(connection: 2, _) = $0 { true } else { false } })
    }
  }

  /// A server's restart is no reason for backoff.
  @Test func reconnectsAtOnceToAServerThatHasAnswered() async throws {
    try await PoolFixture.run(pool: {
      $0.reconnectBackoff = .seconds(100)
      $0.maximumReconnectBackoff = .seconds(100)
    }) { request, responder in
      if responder.connection.id == 1 { responder.connection.goAway() }
      PoolFixture.answer(request, responder)
    } _: { fixture in
      fixture.submit(tickets: 0..<1)
      try await fixture.completions.wait(count: 1)
      fixture.submit(tickets: 1..<2)
      let completions = try await fixture.completions.wait(count: 2)
      #expect(completions.map(\.status) == [200, 200])
    }
  }

  @Test func peerThatReadsNothingIsDisconnected() async throws {
    try await run(
      try await RawServer([.settings], reads: false), configure: { $0.acknowledgementTimeout = .milliseconds(300) }
    ) {
      pool, events in
      try await events.wait(count: 1)
      await #expect {
        try await pool.execute(PoolFixture.request(1, body: Array(repeating: 0, count: 60_000), timeout: .seconds(50)))
      } throws: { ($0 as? HTTP2RequestError)?.code == .connectionLost }
    }
  }
}
