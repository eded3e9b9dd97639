import Testing

@testable import Store

@Suite struct ReconnectBackoffTests {
  private let start = ContinuousClock.now

  @Test func concurrentAttemptsCountAsOneFailure() {
    var backoff = ReconnectBackoff()
    let counted = (1...8).map { number in
      backoff.failed(begunAt: start, at: start + .milliseconds(number), random: 1)
    }
    #expect(counted == [true] + Array(repeating: false, count: 7))
    #expect(backoff.failures == 1)
    #expect(backoff.notBefore == start + .milliseconds(51))
    // The next round: all attempts waited for the same moment.
    let next = start + .milliseconds(51)
    for number in 1...8 { _ = backoff.failed(begunAt: next, at: next + .milliseconds(number), random: 1) }
    #expect(backoff.failures == 2)
    #expect(backoff.notBefore == next + .milliseconds(101))
  }

  @Test func pausesGrowUntilASuccess() {
    var (backoff, now) = (ReconnectBackoff(), start)
    var pauses: [Duration] = []
    for _ in 1...10 {
      _ = backoff.failed(begunAt: now, at: now, random: 1)
      let next = backoff.notBefore ?? now
      pauses.append(next - now)
      now = next
    }
    #expect(pauses == [50, 100, 200, 400, 800, 1600, 3200, 5000, 5000, 5000].map { Duration.milliseconds($0) })
    backoff.succeeded()
    #expect(backoff.failures == 0 && backoff.notBefore == nil)
    _ = backoff.failed(begunAt: start, at: now, random: 0)
    #expect(backoff.failures == 1)
    #expect(backoff.notBefore == now + .milliseconds(25))
  }
}
