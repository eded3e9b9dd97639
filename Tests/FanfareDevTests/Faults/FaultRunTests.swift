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
  @Test func aDeviceThatIsLeftOutOrTooManyIsAmiss() {
    let both: [Platform: [DeviceResult.Outcome: Int]] = [.apns: [.delivered: 1], .fcm: [.expired: 1]]
    #expect(FaultRun.devicesAmiss(in: report(both), ofSend: 1) == 0)
    #expect(FaultRun.devicesAmiss(in: report(both), ofSend: 0) == 1)
    #expect(FaultRun.devicesAmiss(in: report([.apns: [.delivered: 1]]), ofSend: 1) == 1)
    #expect(
      FaultRun.devicesAmiss(in: report([.apns: [.delivered: 1, .failed: 1], .fcm: [.delivered: 1]]), ofSend: 1) == 1)
  }

  /// It is counted as expired, or as being in flight.
  @Test(arguments: [SendReport.State.expired, .accepted])
  func aSendWithoutPushesHasNoDevices(state: SendReport.State) {
    #expect(FaultRun.devicesAmiss(in: report([:], state), ofSend: 0) == 0)
  }
}
