import HTTP2
import NIOCore
import Synchronization
import Testing

/// All kinds of faults at random; at the end every request must have been reported once and correctly.
@Suite(.timeLimit(.minutes(1))) struct StormTests {
  /// A small generator with a seed (SplitMix64).
  struct Seeded: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
      state &+= 0x9e37_79b9_7f4a_7c15
      var z = state
      z = (z ^ (z >> 30)) &* 0xbf58_476d_1ce4_e5b9
      z = (z ^ (z >> 27)) &* 0x94d0_49bb_1331_11eb
      return z ^ (z >> 31)
    }
  }

  @Test(arguments: [1, 2, 3] as [UInt64]) func everyRequestIsReportedOnce(seed: UInt64) async throws {
    let random = Mutex(Seeded(state: seed))
    let processed = Probe<UInt64>()
    let answered = Probe<UInt64>()
    let count = 600
    try await PoolFixture.run(server: { $0.maximumConcurrentStreams = 20 }) {
      $0.maximumConnections = 3
      $0.growthDelay = .milliseconds(10)
      $0.maximumResponseBodyBytes = 1000
    } handler: { request, responder in
      let dice = random.withLock { Int.random(in: 0..<1000, using: &$0) }
      let ticket = UInt64(request.path.dropFirst()) ?? .max
      if dice < 50 { return responder.reset(.refusedStream) }
      processed.add(ticket)
      switch dice {
      case ..<60: responder.reset(.internalError)
      case ..<62: break
      case ..<75: responder.connection.close()
      case ..<80: PoolFixture.answer(request, responder, body: [UInt8](repeating: 0, count: 5000))
      default:
        if dice < 90 { responder.connection.goAway() }
        if dice > 980 { responder.connection.setMaximumConcurrentStreams(dice - 975) }
        answered.add(ticket)
        if dice.isMultiple(of: 2) { return PoolFixture.answer(request, responder) }
        responder.connection.eventLoop.scheduleTask(in: .microseconds(Int64(dice * 5))) {
          PoolFixture.answer(request, responder)
        }
      }
    } _: { fixture in
      for start in stride(from: 0, to: count, by: 50) {
        fixture.submit(tickets: start..<(start + 50), timeout: .seconds(5))
      }
      let completions = try await fixture.completions.wait(count: count)
      await fixture.pool.close(timeout: .seconds(5))
      #expect(fixture.completions.values.count == count)
      #expect(Set(completions.map(\.ticket)).count == count)
      // Requests are resent only if certainly not processed, so each is processed at most once.
      #expect(processed.values.count == Set(processed.values).count)
      let (seen, known) = (Set(processed.values), Set(answered.values))
      for completion in completions {
        if completion.status == 200 { #expect(known.contains(completion.ticket)) }
        if let error = completion.error, !error.wasPossiblyProcessed {
          #expect(!seen.contains(completion.ticket), "\(error)")
        }
      }
      #expect(completions.contains { $0.status == 200 })
    }
  }
}
