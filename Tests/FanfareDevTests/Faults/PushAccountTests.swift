import FanfareCore
import Testing

@testable import fanfare_dev

/// Which ends of pushes the fault suite takes for mistakes.
struct PushAccountTests {
  private func account(_ devices: [DeviceResult.Outcome: Int] = [:]) -> PushAccount {
    var account = PushAccount()
    account.devices = devices.merging([.delivered: 100]) { $1 }
    account.arrived = 100
    return account
  }

  @Test func whatIsDeliveredHasArrivedAndTheOtherWayRound() {
    var account = account()
    #expect(account.errors == 0)
    account.arrived = 98
    #expect(account.errors == 2)
    account.arrived = 103
    #expect(account.errors == 3)
  }

  @Test(arguments: DeviceResult.Outcome.allCases.filter { $0 != .delivered })
  func everyOtherEndIsAMistake(outcome: DeviceResult.Outcome) {
    #expect(account([outcome: 2]).errors == 2)
  }

  @Test func sendsWithoutPushesAreMistakes() {
    var account = account()
    (account.sendsWithoutPushes, account.expiredSends) = (2, 3)
    #expect(account.errors == 5)
  }

  @Test func whatLivesBrieflyMayExpire() {
    var account = account([.expired: 4])
    (account.mayExpire, account.expiredSends) = (true, 3)
    #expect(account.errors == 0)
    // Not here.
    account.arrived = 101
    #expect(account.errors == 1)
  }

  @Test func ofWhatMayStayUnconfirmedAnyMayHaveArrived() {
    var account = account([.unconfirmed: 2])
    account.mayStayUnconfirmed = true
    for (arrived, errors) in [99: 1, 100: 0, 102: 0, 103: 1] {
      account.arrived = arrived
      #expect(account.errors == errors, "\(arrived) arrived")
    }
  }
}
