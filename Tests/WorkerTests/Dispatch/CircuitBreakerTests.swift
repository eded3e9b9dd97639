import Testing

@testable import Worker

struct CircuitBreakerTests {
  @Test func circuitClosesOpensHalfOpensAndCloses() {
    var gate = CircuitBreaker(probeInterval: 100, outageProbeInterval: 50)
    #expect(gate.allowance(at: 0) == .max)
    #expect(gate.fail(at: 0) == true)
    #expect(gate.fail(at: 1) == false)
    #expect(gate.allowance(at: 99) == 0)
    #expect(gate.allowance(at: 100) == 1)
    gate.beginProbe(at: 100)
    #expect(gate.state == .halfOpen)
    #expect(gate.allowance(at: 500) == 0)
    #expect(gate.fail(at: 500) == false)
    #expect(gate.allowance(at: 599) == 0)
    #expect(gate.allowance(at: 600) == 1)
    gate.beginProbe(at: 600)
    #expect(gate.succeed() == true)
    #expect(gate.allowance(at: 600) == .max)
    #expect(gate.succeed() == false)
  }

  @Test func unansweredProbeCostsIntervalWithdrawnProbeNothing() {
    var gate = CircuitBreaker(probeInterval: 100, outageProbeInterval: 50)
    _ = gate.fail(at: 0)
    gate.beginProbe(at: 100)
    gate.remainUnsure(at: 150)
    #expect(gate.allowance(at: 249) == 0)
    #expect(gate.allowance(at: 250) == 1)
    gate.beginProbe(at: 250)
    gate.withdrawProbe()
    #expect(gate.allowance(at: 250) == 1)
  }

  @Test func answersFromBeforeOpeningNeitherCloseCircuitNorDelayProbe() {
    var gate = CircuitBreaker(probeInterval: 100, outageProbeInterval: 50)
    _ = gate.fail(at: 0)
    #expect(gate.succeed() == false)
    #expect(gate.state == .open)
    _ = gate.fail(at: 50)
    #expect(gate.allowance(at: 100) == 1)
    // Refused before it was submitted, as by rendering: that was the probe.
    _ = gate.fail(at: 100)
    #expect(gate.allowance(at: 199) == 0)
  }

  @Test func silentServiceIsProbedBeforeLastProbeEnds() {
    var policy = CircuitPolicy()
    policy.misses = 1
    policy.after = .zero
    var gate = CircuitBreaker(policy: policy, probeInterval: 100, outageProbeInterval: 50)
    #expect(gate.miss(at: 0) == true)
    gate.beginProbe(at: 50)
    #expect(gate.allowance(at: 99) == 0)
    #expect(gate.allowance(at: 100) == 1)
    gate.beginProbe(at: 100)
    gate.withdrawProbe()
    #expect(gate.allowance(at: 100) == 1)
    gate.beginProbe(at: 100)
    // Whichever of them is answered.
    #expect(gate.succeed() == true)
  }
}
