import Testing

@testable import Worker

struct DropBreakerTests {
  private var policy: DropBreakerPolicy {
    var policy = DropBreakerPolicy()
    policy.window = 100
    policy.minimumCount = 10
    policy.share = 0.5
    return policy
  }

  @Test func `a few dead devices are believed, whatever their share`() {
    var breaker = DropBreaker(policy: policy)
    for _ in 0..<9 { #expect(breaker.record(isGone: true) == false) }
    #expect(!breaker.isTripped)
    #expect(breaker.record(isGone: true) == true)
    #expect(breaker.isTripped)
  }

  @Test func `a usual share of dead devices is believed however many they are`() {
    var breaker = DropBreaker(policy: policy)
    for number in 0..<10_000 { #expect(breaker.record(isGone: number % 4 == 3) == false) }
  }

  @Test func `it recovers once most devices live again`() {
    var breaker = DropBreaker(policy: policy)
    for _ in 0..<50 { _ = breaker.record(isGone: true) }
    #expect(breaker.isTripped)
    var changes = 0
    for _ in 0..<100 where breaker.record(isGone: false) { changes += 1 }
    #expect(changes == 1)
    #expect(!breaker.isTripped)
  }
}
