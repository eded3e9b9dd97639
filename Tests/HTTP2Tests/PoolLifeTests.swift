import Dispatch
import HTTP2
import NIOPosix
import Synchronization
import Testing

@Suite(.timeLimit(.minutes(1))) struct PoolLifeTests {
  @Test func growsWhenFullAndShrinksWhenIdle() async throws {
    let gate = LimitTests.Gate()
    try await PoolFixture.run(server: { $0.maximumConcurrentStreams = 2 }) {
      $0.maximumConnections = 3
      $0.growthDelay = .milliseconds(20)
      $0.idleShrinkTime = .milliseconds(50)
    } handler: { request, responder in
      gate.hold(request, responder)
    } _: { fixture in
      fixture.submit(tickets: 0..<10)
      try await gate.held.wait(count: 6)
      #expect(fixture.pool.statistics.connections == 3)
      #expect(fixture.pool.statistics.queued == 4)
      gate.answer(6)
      try await gate.held.wait(count: 10)
      gate.answer(4)
      try await fixture.completions.wait(count: 10)
      try await fixture.events.wait { $0.count { if case .closed(_, nil) = $0 { true } else { false } } == 2 }
      #expect(fixture.pool.statistics.connections == 1)
    }
  }

  @Test func connectsOnlyWhenNeeded() async throws {
    try await PoolFixture.run(pool: { $0.minimumConnections = 0 }) { request, responder in
      PoolFixture.answer(request, responder)
    } _: { fixture in
      #expect(fixture.pool.statistics.connections + fixture.pool.statistics.connecting == 0)
      let response1 = try await fixture.pool.execute(PoolFixture.request(1))
      #expect(response1.status == 200)
    }
  }

  @Test func drainsWhenClosed() async throws {
    let gate = LimitTests.Gate()
    try await PoolFixture.run(server: { $0.maximumConcurrentStreams = 5 }) { request, responder in
      gate.hold(request, responder)
    } _: { fixture in
      fixture.submit(tickets: 0..<8)
      try await gate.held.wait(count: 5)
      async let closed: Void = fixture.pool.close(timeout: .seconds(10))
      let refused = try await fixture.completions.wait(count: 3)
      #expect(refused.map(\.ticket) == [5, 6, 7])
      #expect(refused.allSatisfy { $0.error?.code == .closed && $0.error?.wasPossiblyProcessed == false })
      gate.answer(5)
      await closed
      let completions = try await fixture.completions.wait(count: 8)
      #expect(completions.suffix(5).allSatisfy { $0.status == 200 })
      await #expect(throws: HTTP2RequestError(.closed, wasPossiblyProcessed: false)) {
        try await fixture.pool.execute(PoolFixture.request(9))
      }
    }
  }

  @Test func closingFailsRequestsThatTakeTooLong() async throws {
    let arrived = Probe<String>()
    try await PoolFixture.run { request, _ in
      arrived.add(request.path)
    } _: { fixture in
      fixture.submit(tickets: 0..<4)
      try await arrived.wait(count: 4)
      await fixture.pool.close(timeout: .milliseconds(50))
      #expect(fixture.completions.values.count == 4)
      #expect(
        fixture.completions.values.allSatisfy { $0.error?.code == .closed && $0.error?.wasPossiblyProcessed == true })
    }
  }

  @Test func everythingIsReportedBeforeClosed() async throws {
    let pool = try PoolFixture.pool(port: 1, events: Probe()) { _ in }
    let completions = Probe<HTTP2Completion>()
    pool.submit((0..<100).map { PoolFixture.request($0) }) { completions.add(contentsOf: $0) }
    await pool.close(timeout: .zero)
    #expect(completions.values.count == 100)
  }

  /// NIO's own lookups wait for one another on each event loop.
  @Test func slowNameLookupDelaysNoOtherPool() async throws {
    let eventLoop = PoolFixture.group.next()
    let (asked, answered) = (Probe<String>(), DispatchSemaphore(value: 0))
    try await PoolFixture.run { request, responder in
      PoolFixture.answer(request, responder)
    } _: { fixture in
      let slow = try PoolFixture.pool(port: 1, events: Probe(), on: eventLoop) {
        $0.lookUp = { host, _ in
          asked.add(host)
          answered.wait()
          return []
        }
        $0.reconnectBackoff = .seconds(100)
        $0.maximumReconnectBackoff = .seconds(100)
      }
      let quick = try PoolFixture.pool(port: #require(fixture.server.boundPort), events: Probe(), on: eventLoop) {
        $0.host = "localhost"
      }
      let runs = [slow, quick].map { pool in Task { await pool.run() } }
      try await asked.wait(count: 1)
      let response = try await quick.execute(PoolFixture.request(1))
      #expect(response.status == 200)
      answered.signal()
      await slow.close(timeout: .zero)
      await quick.close(timeout: .zero)
      for run in runs { await run.value }
    }
  }

  @Test func endsWithItsTask() async throws {
    let arrived = Probe<String>()
    try await PoolFixture.run { request, _ in
      arrived.add(request.path)
    } _: { fixture in
      let pool = try PoolFixture.pool(port: #require(fixture.server.boundPort), events: Probe()) {
        $0.cancellationTimeout = .zero
      }
      let run = Task { await pool.run() }
      fixture.pool.submit([PoolFixture.request(1, timeout: .seconds(1))]) { _ in }
      let completions = fixture.completions
      pool.submit([PoolFixture.request(2)]) { completions.add(contentsOf: $0) }
      try await arrived.wait { $0.contains("/2") }
      run.cancel()
      await run.value
      #expect(fixture.completions.values.first?.error?.code == .closed)
    }
  }

  @Test func renewsItsConnections() async throws {
    let held = Probe<(request: HTTP2ServerRequest, responder: HTTP2Responder)>()
    try await PoolFixture.run { request, responder in
      held.add((request, responder))
      if request.path != "/0" { PoolFixture.answer(request, responder) }
    } _: { fixture in
      fixture.submit(tickets: 0..<1)
      try await held.wait(count: 1)
      fixture.pool.renewConnections()
      fixture.submit(tickets: 1..<2)
      try await fixture.completions.wait(count: 1)
      #expect(held.values.map(\.responder.connection.id) == [1, 2])
      #expect(fixture.pool.statistics.draining == 1)
      let (request, responder) = held.values[0]
      PoolFixture.answer(request, responder)
      let completions = try await fixture.completions.wait(count: 2)
      #expect(completions.allSatisfy { $0.status == 200 })
      try await fixture.events.wait { $0.contains(.closed(connection: 1, error: nil)) }
    }
  }

  @Test func replacesOldConnections() async throws {
    try await PoolFixture.run(pool: { $0.maximumConnectionAge = .milliseconds(30) }) { request, responder in
      PoolFixture.answer(request, responder)
    } _: { fixture in
      let response1 = try await fixture.pool.execute(PoolFixture.request(1))
      #expect(response1.status == 200)
      let events = try await fixture.events.wait { $0.contains(.closed(connection: 1, error: nil)) }
      // The successor is open before the old connection closes.
      #expect(
        events.firstIndex(of: .opened(connection: 2, streamLimit: 1000)) ?? .max < events.firstIndex(
          of: .closed(connection: 1, error: nil)) ?? 0)
      let response2 = try await fixture.pool.execute(PoolFixture.request(2))
      #expect(response2.status == 200)
    }
  }

  @Test func invalidSettingsAreRefused() {
    for configure: (inout HTTP2PoolConfiguration) -> Void in [
      { $0.port = 0 }, { $0.minimumConnections = 2 }, { $0.maximumStreamsPerConnection = 0 },
      { $0.tickInterval = .zero },
    ] {
      #expect {
        try PoolFixture.pool(port: 1, events: Probe(), configure: configure)
      } throws: {
        ($0 as? HTTP2ConnectionError)?.code == .invalidConfiguration
      }
    }
  }
}
