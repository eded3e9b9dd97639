import FanfareCore
import Testing

@testable import fanfare_dev

struct FaultRunTests {
  private func report(_ counts: [Platform: [DeviceResult.Outcome: Int]], _ state: SendReport.State = .settled)
    -> SendReport
  {
    SendReport(
      id: .random(), hub: .default, state: state, sender: nil, acceptedAt: nil, settledAt: nil, counts: counts,
      devices: nil)
  }

  /// Send 0 goes to a user with a Windows machine, send 1 to one without.
  @Test func missingAndExtraDevicesAreCounted() {
    let both: [Platform: [DeviceResult.Outcome: Int]] = [.apns: [.delivered: 1], .fcm: [.expired: 1]]
    #expect(FaultRun.devicesAmiss(in: report(both), ofSend: 1) == 0)
    #expect(FaultRun.devicesAmiss(in: report(both), ofSend: 0) == 1)
    #expect(FaultRun.devicesAmiss(in: report([.apns: [.delivered: 1]]), ofSend: 1) == 1)
    #expect(
      FaultRun.devicesAmiss(in: report([.apns: [.delivered: 1, .failed: 1], .fcm: [.delivered: 1]]), ofSend: 1) == 1)
  }

  /// Such a send counts as expired or as in flight.
  @Test(arguments: [SendReport.State.expired, .accepted])
  func sendWithoutPushesHasNoDevices(state: SendReport.State) {
    #expect(FaultRun.devicesAmiss(in: report([:], state), ofSend: 0) == 0)
  }
}

/// Which rows of the fault suite count as passed.
struct FaultRowTests {
  private func row(
    inFlight: Int = 0, lost: Int = 0, repeated: Int = 0, each: [Int] = [], limit: RepeatLimit = .none, errors: Int = 0
  ) -> FaultRow {
    FaultRow(
      fault: "a fault", accepted: 100, settled: 100 - inFlight, inFlight: inFlight, lost: lost, repeated: repeated,
      repeatedEach: each, repeatLimit: limit, accountingErrors: errors, observed: nil, secondsToRecover: 1)
  }

  @Test func lostWrongOrUnfinishedSendsFailTheRow() {
    #expect(row().isGood)
    #expect(!row(inFlight: 1).isGood)
    #expect(!row(lost: 1).isGood)
    #expect(!row(errors: 1).isGood)
  }

  @Test func repeatsNeedALimit() {
    #expect(!row(repeated: 1).isGood)
    #expect(row(repeated: 1).tableRow.contains("TOO MANY"))
    #expect(row(repeated: 1000, limit: .some).isGood)
  }

  @Test(arguments: [
    ([], true), ([0, 0], true), ([0, 50], true), ([0, 51], false), ([10, 20, 200], true), ([10, 20, 201], false),
    ([50, 51, 51], false), ([0, 50, 51, 51], false), ([0, 0, 50, 51, 60], true),
  ])
  func killMayRepeatPushesInFlight(each: [Int], isGood: Bool) {
    let repeated = each.reduce(0, +)
    #expect(row(repeated: repeated, each: each, limit: .each(most: 200)).isGood == isGood)
  }

  /// Repeats after the last kill was checked have no cause.
  @Test func repeatsWithoutKillFailTheRow() {
    #expect(!row(repeated: 500, each: [0, 0], limit: .each(most: 200)).isGood)
    #expect(!row(repeated: 31, each: [10, 20], limit: .each(most: 200)).isGood)
  }
}

/// Which outcomes of pushes count as errors in the fault suite.
struct PushAccountTests {
  private func account(_ devices: [DeviceResult.Outcome: Int] = [:]) -> PushAccount {
    var account = PushAccount()
    account.devices = devices.merging([.delivered: 100]) { $1 }
    account.arrived = 100
    return account
  }

  @Test func deliveredCountMustEqualArrivedCount() {
    var account = account()
    #expect(account.errors == 0)
    account.arrived = 98
    #expect(account.errors == 2)
    account.arrived = 103
    #expect(account.errors == 3)
  }

  @Test(arguments: DeviceResult.Outcome.allCases.filter { $0 != .delivered })
  func everyOtherOutcomeIsAnError(outcome: DeviceResult.Outcome) {
    #expect(account([outcome: 2]).errors == 2)
  }

  @Test func sendsWithoutPushesAreErrors() {
    var account = account()
    (account.sendsWithoutPushes, account.expiredSends) = (2, 3)
    #expect(account.errors == 5)
  }

  @Test func sendsWithShortTimeToLiveMayExpire() {
    var account = account([.expired: 4])
    (account.mayExpire, account.expiredSends) = (true, 3)
    #expect(account.errors == 0)
    // The arrived count must still match.
    account.arrived = 101
    #expect(account.errors == 1)
  }

  @Test func unconfirmedPushesMayHaveArrived() {
    var account = account([.unconfirmed: 2])
    account.mayStayUnconfirmed = true
    for (arrived, errors) in [99: 1, 100: 0, 102: 0, 103: 1] {
      account.arrived = arrived
      #expect(account.errors == errors, "\(arrived) arrived")
    }
  }
}
