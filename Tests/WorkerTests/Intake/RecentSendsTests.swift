import FanfareCore
import Testing

@testable import Worker

struct RecentSendsTests {
  private func key(_ number: UInt64, hub: Int32 = 0) -> RecentSends.Key {
    RecentSends.Key(id: SendID(high: 0, low: number), hub: hub)
  }

  private func ticket(_ slot: Int) -> Ticket { Ticket(slot: slot, generation: 0) }

  @Test func sendIsRememberedUntilOthersHaveSettledAfterIt() {
    var recent = RecentSends(capacity: 2)
    for number in 1...3 as ClosedRange<UInt64> { #expect(recent.open(key(number), as: ticket(Int(number))) == nil) }
    #expect(recent.open(key(1), as: ticket(8)) == ticket(1))
    #expect(recent.open(key(1), as: ticket(7)) == ticket(1))
    #expect(recent.open(key(1, hub: 1), as: ticket(8)) == nil)
    for number in 1...3 as ClosedRange<UInt64> { recent.settle(key(number)) }
    #expect(recent.open(key(2), as: ticket(7)) == ticket(2))
    #expect(recent.open(key(3), as: ticket(7)) == ticket(3))
    #expect(recent.open(key(1), as: ticket(7)) == nil)
  }

  @Test func forgottenSendIsNewAgain() {
    var recent = RecentSends(capacity: 2)
    #expect(recent.open(key(1), as: ticket(0)) == nil)
    recent.forget(key(1))
    #expect(recent.open(key(1), as: ticket(1)) == nil)
  }

  @Test func settledRunsWithoutRoomAreLeftOut() {
    var recent = RecentSends(capacity: 0)
    #expect(recent.open(key(1), as: ticket(0)) == nil)
    recent.settle(key(1))
    #expect(recent.open(key(1), as: ticket(0)) == nil)
  }
}
