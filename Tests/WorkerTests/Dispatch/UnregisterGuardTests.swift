import Testing

@testable import Worker

struct UnregisterGuardTests {
  private var policy: UnregisterPolicy {
    var policy = UnregisterPolicy()
    policy.window = 100
    policy.minimumCount = 10
    policy.share = 0.5
    return policy
  }

  @Test func fewDeadDevicesAreBelievedWhateverTheirShare() {
    var breaker = UnregisterGuard(policy: policy)
    for _ in 0..<9 { #expect(breaker.record(isGone: true) == false) }
    #expect(!breaker.isSuspended)
    #expect(breaker.record(isGone: true) == true)
    #expect(breaker.isSuspended)
  }

  @Test func usualShareOfDeadDevicesIsBelieved() {
    var breaker = UnregisterGuard(policy: policy)
    for number in 0..<10_000 { #expect(breaker.record(isGone: number % 4 == 3) == false) }
  }

  @Test func unregisteringResumesOnceMostDevicesLive() {
    var breaker = UnregisterGuard(policy: policy)
    for _ in 0..<50 { _ = breaker.record(isGone: true) }
    #expect(breaker.isSuspended)
    var changes = 0
    for _ in 0..<100 where breaker.record(isGone: false) { changes += 1 }
    #expect(changes == 1)
    #expect(!breaker.isSuspended)
  }
}
