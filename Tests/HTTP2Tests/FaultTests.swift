import HTTP2
import NIOCore
import Synchronization
import Testing

@Suite(.timeLimit(.minutes(1))) struct FaultTests {
  @Test func refusedRequestsAreResent() async throws {
    let arrivals = Mutex(0)
    let processed = Probe<String>()
    try await PoolFixture.run { request, responder in
      let count = arrivals.withLock { arrivals in
        arrivals += 1
        return arrivals
      }
      if count.isMultiple(of: 3) { return responder.reset(.refusedStream) }
      processed.add(request.path)
      PoolFixture.answer(request, responder)
    } _: { fixture in
      fixture.submit(tickets: 0..<100)
      let completions = try await fixture.completions.wait(count: 100)
      #expect(completions.count { $0.status == 200 } + completions.count { $0.error?.code == .refused } == 100)
      #expect(completions.count { $0.status == 200 } >= 90)
      #expect(processed.values.count == Set(processed.values).count)
      #expect(fixture.events.values.contains { if case .resending = $0 { true } else { false } })
    }
  }

  @Test func requestRefusedTooOftenFails() async throws {
    let arrivals = Mutex(0)
    try await PoolFixture.run { _, responder in
      arrivals.withLock { $0 += 1 }
      responder.reset(.refusedStream)
    } _: { fixture in
      fixture.submit(tickets: 0..<1)
      let error = try await fixture.completions.wait(count: 1)[0].error
      #expect(error?.code == .refused)
      #expect(error?.wasPossiblyProcessed == false)
      #expect(arrivals.withLock { $0 } == 4)
    }
  }

  @Test func reportsOtherResets() async throws {
    try await PoolFixture.run { request, responder in
      responder.reset(request.path == "/0" ? .internalError : .http11Required)
    } _: { fixture in
      fixture.submit(tickets: 0..<2)
      let completions = try await fixture.completions.wait(count: 2)
      let first = completions.first { $0.ticket == 0 }?.error
      #expect(first?.code == .streamReset(.internalError))
      #expect(first?.wasPossiblyProcessed == true)
      #expect(completions.first { $0.ticket == 1 }?.error?.wasPossiblyProcessed == false)
    }
  }

  @Test func requestsNotCoveredByGoAwayAreResent() async throws {
    // After 10 requests the first connection sends GOAWAY for the first 5, and answers those.
    let held = Probe<(HTTP2ServerRequest, HTTP2Responder)>()
    let processed = Probe<String>()
    try await PoolFixture.run { request, responder in
      guard responder.connection.id == 1 else {
        processed.add(request.path)
        return PoolFixture.answer(request, responder)
      }
      held.add((request, responder))
      let requests = held.values
      guard requests.count == 10 else { return }
      responder.connection.goAway(
        lastStreamID: requests[4].0.streamID, debugData: Array(#"{"reason":"Shutdown"}"#.utf8))
      for (request, responder) in requests.prefix(5) {
        processed.add(request.path)
        PoolFixture.answer(request, responder)
      }
    } _: { fixture in
      fixture.submit(tickets: 0..<10)
      let completions = try await fixture.completions.wait(count: 10)
      #expect(completions.allSatisfy { $0.status == 200 })
      #expect(Set(processed.values).count == 10)
      #expect(processed.values.count == 10)
      let goAway = fixture.events.values.first { if case .goAway = $0 { true } else { false } }
      #expect(
        goAway
          == .goAway(
            connection: 1, code: .noError, lastStreamID: held.values[4].0.streamID,
            debugData: Array(#"{"reason":"Shutdown"}"#.utf8)))
      try await fixture.events.wait { $0.contains(.closed(connection: 1, error: nil)) }
    }
  }

  @Test func reportsALostConnectionOnceAndGoesOn() async throws {
    let arrivals = Mutex(0)
    try await PoolFixture.run(server: { $0.maximumConcurrentStreams = 5 }) { request, responder in
      guard responder.connection.id == 1 else { return PoolFixture.answer(request, responder) }
      let count = arrivals.withLock { arrivals in
        arrivals += 1
        return arrivals
      }
      if count == 5 { responder.connection.close() }
    } _: { fixture in
      fixture.submit(tickets: 0..<20)
      let completions = try await fixture.completions.wait(count: 20)
      let lost = completions.filter { $0.error != nil }
      #expect(lost.map(\.ticket).sorted() == [0, 1, 2, 3, 4])
      #expect(lost.allSatisfy { $0.error?.code == .connectionLost && $0.error?.wasPossiblyProcessed == true })
      #expect(completions.count { $0.status == 200 } == 15)
    }
  }

  @Test func endsRequestsAtTheirDeadline() async throws {
    let arrived = Probe<String>()
    try await PoolFixture.run(server: { $0.maximumConcurrentStreams = 1 }) { request, responder in
      arrived.add(request.path)
      if request.path != "/0" { PoolFixture.answer(request, responder) }
    } _: { fixture in
      try await fixture.events.wait(count: 1)
      // The first request occupies the only stream, the second waits for it in vain, the third gets it.
      fixture.submit([PoolFixture.request(0, timeout: .seconds(5))])
      try await arrived.wait(count: 1)
      fixture.submit([PoolFixture.request(1, timeout: .milliseconds(50)), PoolFixture.request(2)])
      let completions = try await fixture.completions.wait(count: 3).sorted { $0.ticket < $1.ticket }
      #expect(completions[0].error?.code == .deadlineExceeded)
      #expect(completions[0].error?.wasPossiblyProcessed == true)
      #expect(completions[1].error?.code == .deadlineExceeded)
      #expect(completions[1].error?.wasPossiblyProcessed == false)
      #expect(completions[2].status == 200)
    }
  }

  @Test func expiredRequestIsNotStarted() async throws {
    let gate = LimitTests.Gate()
    try await PoolFixture.run(server: { $0.maximumConcurrentStreams = 1 }, handler: { gate.hold($0, $1) }) { fixture in
      fixture.submit(tickets: 0..<1)
      try await gate.held.wait(count: 1)
      var impatient = PoolFixture.request(1)
      impatient.patience = .zero
      fixture.submit([impatient, PoolFixture.request(2)])
      gate.answer(1)
      try await gate.held.wait(count: 2)
      gate.answer(1)
      let completions = try await fixture.completions.wait(count: 3).sorted { $0.ticket < $1.ticket }
      #expect(completions.map(\.status) == [200, nil, 200])
      #expect(
        completions[1].error
          == HTTP2RequestError(.deadlineExceeded, wasPossiblyProcessed: false, message: "waited for a free stream"))
    }
  }

  @Test func expiredRequestsFreeTheirStreams() async throws {
    let gate = LimitTests.Gate()
    // The pool's own clock does not tick during the test, so that the connection meets the expired requests.
    try await PoolFixture.run(server: { $0.maximumConcurrentStreams = 1 }) {
      $0.tickInterval = .seconds(100)
    } handler: { request, responder in
      gate.hold(request, responder)
    } _: { fixture in
      fixture.submit(tickets: 0..<1)
      try await gate.held.wait(count: 1)
      fixture.submit([
        PoolFixture.request(1, timeout: .zero), PoolFixture.request(2, timeout: .zero), PoolFixture.request(3),
      ])
      gate.answer(1)
      try await gate.held.wait(count: 2)
      gate.answer(1)
      let completions = try await fixture.completions.wait(count: 4).sorted { $0.ticket < $1.ticket }
      #expect(completions.map(\.status) == [200, nil, nil, 200])
    }
  }

  @Test func endsWaitingRequestsWithoutAServer() async throws {
    let events = Probe<HTTP2PoolEvent>()
    let pool = try PoolFixture.pool(port: try await ChildProcess.freePort(), events: events) { _ in }
    async let run: Void = pool.run()
    try await events.wait(count: 1)
    await #expect {
      try await pool.execute(PoolFixture.request(1, timeout: .milliseconds(100)))
    } throws: { error in
      let error = error as? HTTP2RequestError
      return error?.code == .deadlineExceeded && error?.wasPossiblyProcessed == false
        && error?.message.hasSuffix("connectFailed: Connection refused") == true
    }
    // Pauses grow with each failure.
    let pauses = try await events.wait(count: 4).compactMap {
      if case .failed(_, _, let pause) = $0 { pause } else { nil }
    }
    #expect(pauses[3] > pauses[0])
    await pool.close(timeout: .zero)
    await run
  }

  @Test func findsADeadConnectionByPing() async throws {
    try await PoolFixture.run(server: { $0.answersPings = false }) {
      $0.idlePingInterval = .milliseconds(50)
      $0.pingTimeout = .milliseconds(50)
    } handler: { _, _ in
    } _: { fixture in
      fixture.submit(tickets: 0..<2)
      let completions = try await fixture.completions.wait(count: 2)
      #expect(completions.allSatisfy { $0.error?.code == .connectionLost && $0.error?.wasPossiblyProcessed == true })
      let events = try await fixture.events.wait { $0.contains { if case .closed = $0 { true } else { false } } }
      guard case .closed(_, let error)? = events.first(where: { if case .closed = $0 { true } else { false } }) else {
        return
      }
      #expect(error?.code == .unresponsive)
    }
  }

  @Test func keepsALivingConnectionByPing() async throws {
    try await PoolFixture.run(pool: {
      $0.idlePingInterval = .milliseconds(10)
      $0.pingTimeout = .seconds(60)
    }) { request, responder in
      // Long enough for many PINGs.
      _ = responder.connection.eventLoop.scheduleTask(in: .milliseconds(300)) { PoolFixture.answer(request, responder) }
    } _: { fixture in
      let response1 = try await fixture.pool.execute(PoolFixture.request(1))
      #expect(response1.status == 200)
      #expect(fixture.pool.statistics.connections == 1)
      #expect(!fixture.events.values.contains { if case .closed = $0 { true } else { false } })
    }
  }

  @Test func findsADeadConnectionBySilence() async throws {
    let arrived = Probe<String>()
    try await PoolFixture.run(pool: { $0.pingTimeout = .milliseconds(50) }) { request, _ in
      arrived.add(request.path)
    } _: { fixture in
      try await fixture.events.wait(count: 1)
      fixture.submit(tickets: 0..<3, timeout: .seconds(5))
      try await arrived.wait(count: 3)
      let completions = try await fixture.completions.wait(count: 3)
      #expect(completions.allSatisfy { $0.error?.code == .deadlineExceeded })
      try await fixture.events.wait {
        $0.contains { if case .closed(_, let error?) = $0 { error.code == .unresponsive } else { false } }
      }
    }
  }
}
