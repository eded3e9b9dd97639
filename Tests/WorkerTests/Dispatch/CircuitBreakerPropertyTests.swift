import FanfareCore
import Testing

@testable import Worker

/// What holds of the circuit whatever comes, and in whichever order: pushes and late answers at random, on a clock that
/// only the test moves.
struct CircuitBreakerPropertyTests {
  @Test(arguments: UInt64(1)...16)
  func circuitNeverHasTwoProbesNorOpensWithoutCause(
    seed: UInt64
  ) {
    var generator = SplitMix64(seed: seed)
    var policy = CircuitPolicy()
    policy.misses = Int.random(in: 1...8, using: &generator)
    policy.after = .milliseconds(Int64.random(in: 0...400, using: &generator))
    let (interval, outageInterval) = (Int64(100), Int64(40))
    var breaker = CircuitBreaker(policy: policy, probeInterval: interval, outageProbeInterval: outageInterval)
    var now: Int64 = 0
    var probes = 0
    var probedAt: Int64 = 0
    var run = (misses: 0, since: Int64(0))
    var (openings, recoveries) = (0, 0)
    for _ in 0..<2000 {
      now += Int64.random(in: 0...30, using: &generator)
      let before = breaker.state
      let allowance = breaker.allowance(at: now)
      #expect((allowance == .max) == (before == .closed))
      let isSilent = breaker.cause == .outage && now >= probedAt + outageInterval
      #expect(allowance == .max || allowance + probes <= 1 || isSilent, "never more than one probe, or one an interval")
      if before == .open { #expect(allowance <= 1) }
      switch Int.random(in: 0..<10, using: &generator) {
      case 0..<3 where before != .closed && allowance == 1:
        breaker.beginProbe(at: now)
        probes = 1
        probedAt = now
        #expect(breaker.state == .halfOpen && breaker.allowance(at: now + outageInterval - 1) == 0)
        #expect(breaker.allowance(at: now + 1_000_000) == (breaker.cause == .outage ? 1 : 0))
      case 3:
        if breaker.succeed() {
          recoveries += 1
          #expect(before == .halfOpen && breaker.state == .closed && breaker.allowance(at: now) == .max)
        } else {
          #expect(
            breaker.state == before && before != .halfOpen,
            "a success of the probe always closes it, any other changes nothing")
        }
        run = (0, 0)
        if breaker.state == .closed { probes = 0 }
      case 4 where Int.random(in: 0..<4, using: &generator) == 0:
        let isNews = breaker.fail(at: now)
        #expect(breaker.state == .open && breaker.cause == .configuration)
        if before == .closed {
          #expect(isNews && breaker.allowance(at: now) == 0 && breaker.allowance(at: now + interval) == 1)
        }
        probes = 0
      case 5..<8 where before == .closed:
        if run.misses == 0 { run.since = now }
        run.misses += 1
        let opened = breaker.miss(at: now)
        #expect(opened == (run.misses >= policy.misses && now - run.since >= policy.after.milliseconds))
        #expect((breaker.state == .open) == opened)
        guard opened else { break }
        openings += 1
        #expect(breaker.cause == .outage && breaker.allowance(at: now + outageInterval - 1) == 0)
        #expect(breaker.allowance(at: now + outageInterval) == 1)
      case 5..<8:
        #expect(!breaker.miss(at: now) && breaker.state == before)
      case 8:
        breaker.withdrawProbe()
        if before == .halfOpen { #expect(breaker.state == .open) } else { #expect(breaker.state == before) }
        probes = 0
      case 9:
        breaker.remainUnsure(at: now)
        if before == .halfOpen {
          #expect(breaker.state == .open && breaker.allowance(at: now) == 0)
        } else {
          #expect(breaker.state == before)
        }
        probes = 0
      default: break
      }
      // The circuit never stays open for good: after the longer interval a probe is allowed wherever none is under way.
      if breaker.state == .open { #expect(breaker.allowance(at: now + interval) == 1) }
    }
    #expect(openings > 0 && recoveries > 0, "the storm has been through every state")
  }
}
