import Testing

@testable import Worker

struct CircuitBreakerTests {
  @Test func circuitClosesOpensHalfOpensAndCloses() {
    var breaker = CircuitBreaker(probeInterval: 100, outageProbeInterval: 50)
    #expect(breaker.allowance(at: 0) == .max)
    #expect(breaker.fail(at: 0) == true)
    #expect(breaker.fail(at: 1) == false)
    #expect(breaker.allowance(at: 99) == 0)
    #expect(breaker.allowance(at: 100) == 1)
    breaker.beginProbe(at: 100)
    #expect(breaker.state == .halfOpen)
    #expect(breaker.allowance(at: 500) == 0)
    #expect(breaker.fail(at: 500) == false)
    #expect(breaker.allowance(at: 599) == 0)
    #expect(breaker.allowance(at: 600) == 1)
    breaker.beginProbe(at: 600)
    #expect(breaker.succeed() == true)
    #expect(breaker.allowance(at: 600) == .max)
    #expect(breaker.succeed() == false)
  }

  @Test func unansweredProbeCostsIntervalWithdrawnProbeNothing() {
    var breaker = CircuitBreaker(probeInterval: 100, outageProbeInterval: 50)
    _ = breaker.fail(at: 0)
    breaker.beginProbe(at: 100)
    breaker.remainUnsure(at: 150)
    #expect(breaker.allowance(at: 249) == 0)
    #expect(breaker.allowance(at: 250) == 1)
    breaker.beginProbe(at: 250)
    breaker.withdrawProbe()
    #expect(breaker.allowance(at: 250) == 1)
  }

  @Test func answersFromBeforeOpeningNeitherCloseCircuitNorDelayProbe() {
    var breaker = CircuitBreaker(probeInterval: 100, outageProbeInterval: 50)
    _ = breaker.fail(at: 0)
    #expect(breaker.succeed() == false)
    #expect(breaker.state == .open)
    _ = breaker.fail(at: 50)
    #expect(breaker.allowance(at: 100) == 1)
    // Refused before it was submitted, as by rendering: that was the probe.
    _ = breaker.fail(at: 100)
    #expect(breaker.allowance(at: 199) == 0)
  }

  @Test func silentServiceIsProbedBeforeLastProbeEnds() {
    var policy = CircuitPolicy()
    policy.misses = 1
    policy.after = .zero
    var breaker = CircuitBreaker(policy: policy, probeInterval: 100, outageProbeInterval: 50)
    #expect(breaker.miss(at: 0) == true)
    breaker.beginProbe(at: 50)
    #expect(breaker.allowance(at: 99) == 0)
    #expect(breaker.allowance(at: 100) == 1)
    breaker.beginProbe(at: 100)
    breaker.withdrawProbe()
    #expect(breaker.allowance(at: 100) == 1)
    breaker.beginProbe(at: 100)
    // Whichever of them is answered.
    #expect(breaker.succeed() == true)
  }
}
