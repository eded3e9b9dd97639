import FanfareCore
import Testing

@testable import Worker

struct RecentSendsTests {
  private func key(_ number: UInt64, hub: Int32 = 0) -> RecentSends.Key {
    RecentSends.Key(id: SendID(high: 0, low: number), hub: hub)
  }

  @Test func `a send is open, then settled, then forgotten when others have come after it`() {
    var recent = RecentSends(capacity: 2)
    #expect(recent.open(key(1), slot: 9) == .unknown)
    #expect(recent.open(key(1), slot: 8) == .open(slot: 9))
    #expect(recent.open(key(1), slot: 7) == .open(slot: 9))
    #expect(recent.open(key(1, hub: 1), slot: 8) == .unknown)
    for number in 1...3 as ClosedRange<UInt64> { recent.settle(key(number)) }
    #expect(recent.open(key(2), slot: 7) == .settled)
    #expect(recent.open(key(3), slot: 7) == .settled)
    #expect(recent.open(key(1), slot: 7) == .unknown)
  }

  @Test func `only what has not settled can be forgotten`() {
    var recent = RecentSends(capacity: 2)
    #expect(recent.open(key(1), slot: 0) == .unknown)
    recent.forget(key(1))
    #expect(recent.open(key(1), slot: 1) == .unknown)
    recent.settle(key(2))
    recent.forget(key(2))
    #expect(recent.open(key(2), slot: 1) == .settled)
  }
}
