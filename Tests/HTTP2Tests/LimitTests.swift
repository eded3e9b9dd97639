import HTTP2
import Synchronization
import Testing

@Suite(.timeLimit(.minutes(1))) struct LimitTests {
  /// Holds requests until told to answer them.
  final class Gate: Sendable {
    let held = Probe<(request: HTTP2ServerRequest, responder: HTTP2Responder)>()
    private let answered = Mutex(0)

    func hold(_ request: HTTP2ServerRequest, _ responder: HTTP2Responder) { held.add((request, responder)) }

    /// Requests that are not answered yet.
    var open: Int { held.values.count - answered.withLock { $0 } }

    /// Answers the next `count` requests.
    func answer(_ count: Int) {
      let values = held.values
      let range = answered.withLock { answered in
        defer { answered += count }
        return answered..<(answered + count)
      }
      for (request, responder) in values[range] { PoolFixture.answer(request, responder) }
    }
  }

  @Test func followsTheStreamLimitUpAndDown() async throws {
    let gate = Gate()
    try await PoolFixture.run(server: { $0.maximumConcurrentStreams = 1 }) { request, responder in
      gate.hold(request, responder)
    } _: { fixture in
      fixture.submit(tickets: 0..<40)
      let first = try await gate.held.wait(count: 1)
      #expect(fixture.pool.statistics.streamLimit == 1)
      // Raised: the new allowance arrives at once, and no more.
      first[0].responder.connection.setMaximumConcurrentStreams(10)
      try await gate.held.wait(count: 10)
      #expect(gate.open == 10)
      // Lowered with ten open: no new request may arrive before nine have ended.
      first[0].responder.connection.setMaximumConcurrentStreams(2)
      try await fixture.events.wait { $0.contains(.streamLimitChanged(connection: 1, streamLimit: 2)) }
      gate.answer(8)
      try await fixture.completions.wait(count: 8)
      #expect(gate.held.values.count == 10)
      for done in 9...40 {
        gate.answer(1)
        try await fixture.completions.wait(count: done)
        try await gate.held.wait(count: min(40, done + 2))
        #expect(gate.open <= 2)
      }
      #expect(fixture.completions.values.allSatisfy { $0.status == 200 })
    }
  }

  @Test func neverExceedsItsOwnLimit() async throws {
    let gate = Gate()
    try await PoolFixture.run(pool: { $0.maximumStreamsPerConnection = 3 }) { request, responder in
      gate.hold(request, responder)
    } _: { fixture in
      fixture.submit(tickets: 0..<12)
      for done in stride(from: 3, through: 12, by: 3) {
        try await gate.held.wait(count: done)
        #expect(gate.open == 3)
        #expect(fixture.pool.statistics.openStreams == 3)
        gate.answer(3)
      }
      try await fixture.completions.wait(count: 12)
    }
  }

  @Test func headersBeyondTheServersLimitAreRefused() async throws {
    try await PoolFixture.run(server: { $0.maximumHeaderListSize = 1000 }) { request, responder in
      PoolFixture.answer(request, responder)
    } _: { fixture in
      var large = PoolFixture.request(1)
      large.headers.append("x-large", String(repeating: "x", count: 1000))
      fixture.submit([large, PoolFixture.request(2)])
      let completions = try await fixture.completions.wait(count: 2)
      #expect(completions.first { $0.ticket == 1 }?.error?.code == .requestTooLarge)
      #expect(completions.first { $0.ticket == 1 }?.error?.wasPossiblyProcessed == false)
      #expect(completions.first { $0.ticket == 2 }?.status == 200)
    }
  }

  @Test func headersBeyondTheFrameLimitAreRefused() async throws {
    try await PoolFixture.run(server: { $0.maximumHeaderListSize = 1 << 30 }) { request, responder in
      PoolFixture.answer(request, responder)
    } _: { fixture in
      var large = PoolFixture.request(1)
      large.headers.append("x-large", String(repeating: "~", count: 500_000))
      fixture.submit([large, PoolFixture.request(2)])
      let completions = try await fixture.completions.wait(count: 2)
      #expect(completions.first { $0.ticket == 1 }?.error?.code == .requestTooLarge)
      #expect(completions.first { $0.ticket == 2 }?.status == 200)
      #expect(fixture.pool.statistics.openStreams == 0)
    }
  }

  @Test func sendsBodiesThroughSmallWindows() async throws {
    let body = (0..<4096).map { UInt8(truncatingIfNeeded: $0 &* 31) }
    try await PoolFixture.run {
      $0.streamWindow = 1000
      $0.connectionWindow = 65_535
    } handler: { request, responder in
      PoolFixture.answer(request, responder, status: request.body == body ? 200 : 400)
    } _: { fixture in
      fixture.submit((0..<300).map { PoolFixture.request($0, body: body) })
      let completions = try await fixture.completions.wait(count: 300)
      #expect(completions.allSatisfy { $0.status == 200 })
    }
  }

  @Test func longAnswersAreRefused() async throws {
    try await PoolFixture.run(pool: { $0.maximumResponseBodyBytes = 1000 }) { request, responder in
      PoolFixture.answer(request, responder, body: [UInt8](repeating: 1, count: request.path == "/1" ? 100_000 : 1000))
    } _: { fixture in
      fixture.submit(tickets: 0..<3)
      let completions = try await fixture.completions.wait(count: 3)
      for completion in completions {
        if completion.ticket == 1 {
          #expect(completion.error?.code == .responseTooLarge)
        } else {
          #expect(try completion.result.get().body.count == 1000)
        }
      }
    }
  }

  @Test func serverRefusesLargeRequests() async throws {
    try await PoolFixture.run(server: { $0.maximumBodyBytes = 1000 }) { request, responder in
      PoolFixture.answer(request, responder)
    } _: { fixture in
      fixture.submit([
        PoolFixture.request(0, body: [UInt8](repeating: 1, count: 1001)),
        PoolFixture.request(1, body: [UInt8](repeating: 1, count: 1000)),
      ])
      let completions = try await fixture.completions.wait(count: 2).sorted { $0.ticket < $1.ticket }
      #expect(completions[0].error?.code == .streamReset(.enhanceYourCalm))
      #expect(completions[1].status == 200)
    }
  }

  @Test func requestsBeyondTheQueueLimitAreRefused() async throws {
    let gate = Gate()
    try await PoolFixture.run(server: { $0.maximumConcurrentStreams = 1 }) {
      $0.maximumQueuedRequests = 5
    } handler: { request, responder in
      gate.hold(request, responder)
    } _: { fixture in
      fixture.submit(tickets: 0..<1)
      try await gate.held.wait(count: 1)
      fixture.submit(tickets: 1..<10)
      let refused = try await fixture.completions.wait(count: 4)
      #expect(refused.map(\.ticket) == [6, 7, 8, 9])
      #expect(refused.allSatisfy { $0.error?.code == .queueFull && $0.error?.wasPossiblyProcessed == false })
      for count in 1...6 {
        try await gate.held.wait(count: count)
        gate.answer(1)
      }
      try await fixture.completions.wait(count: 10)
    }
  }
}
