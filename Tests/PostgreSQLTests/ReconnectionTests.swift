import Testing

@testable import PostgreSQL

/// When a server that cannot be reached is tried again.
@Suite struct ReconnectionTests {
  private let start = ContinuousClock.now

  @Test func attemptsOfOneMomentAreOneFailure() {
    var reconnection = Reconnection()
    let counted = (1...8).map { number in
      reconnection.failed(begunAt: start, at: start + .milliseconds(number), random: 1)
    }
    #expect(counted == [true] + Array(repeating: false, count: 7))
    #expect(reconnection.failures == 1)
    #expect(reconnection.notBefore == start + .milliseconds(51))
    // The next round: all of them have waited for the same moment.
    let next = start + .milliseconds(51)
    for number in 1...8 { _ = reconnection.failed(begunAt: next, at: next + .milliseconds(number), random: 1) }
    #expect(reconnection.failures == 2)
    #expect(reconnection.notBefore == next + .milliseconds(101))
  }

  @Test func pausesGrowUntilItSucceeds() {
    var (reconnection, now) = (Reconnection(), start)
    var pauses: [Duration] = []
    for _ in 1...10 {
      _ = reconnection.failed(begunAt: now, at: now, random: 1)
      let next = reconnection.notBefore ?? now
      pauses.append(next - now)
      now = next
    }
    #expect(pauses == [50, 100, 200, 400, 800, 1600, 3200, 5000, 5000, 5000].map { Duration.milliseconds($0) })
    reconnection.succeeded()
    #expect(reconnection.failures == 0 && reconnection.notBefore == nil)
    _ = reconnection.failed(begunAt: start, at: now, random: 0)
    #expect(reconnection.failures == 1)
    #expect(reconnection.notBefore == now + .milliseconds(25))
  }
}
