import FanfareCore
import Testing

@testable import Worker

struct StatusPartsTests {
  private func results(_ count: Int) -> [DeviceResult] {
    (0..<count).map { number in
      DeviceResult(
        registration: RegistrationID(high: 7, low: UInt64(number)), platform: .fcm, outcome: .delivered, reason: "", status: 200,
        attempts: 1)
    }
  }

  @Test(arguments: [(0, [0]), (1, [1]), (10, [10]), (11, [10, 1]), (20, [10, 10]), (21, [10, 10, 1])])
  func `each device is in one part, and no part is larger than may be`(count: Int, sizes: [Int]) {
    let all = results(count)
    let parts = StatusParts.split(all, limit: 10)
    #expect(parts.map(\.count) == sizes)
    #expect(parts.flatMap { $0 } == all)
  }
}
