import Testing

@testable import Worker

struct StatusPartsTests {
  @Test(arguments: [(0, [0]), (1, [1]), (10, [10]), (11, [10, 1]), (20, [10, 10]), (21, [10, 10, 1])])
  func eachDeviceIsInOnePartWithinLimit(count: Int, sizes: [Int]) {
    let parts = StatusParts(devices: count, limit: 10)
    let ranges = (0..<parts.count).map { parts[$0] }
    #expect(ranges.map(\.count) == sizes)
    #expect(ranges.flatMap { $0 } == Array(0..<count))
  }

  @Test func withoutLimitThereIsOnePart() {
    let parts = StatusParts(devices: 3, limit: .max)
    #expect(parts.count == 1 && parts[0] == 0..<3)
  }
}
