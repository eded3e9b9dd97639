import Testing

@testable import Worker

struct RunsTests {
  @Test(arguments: [([], []), ([7], [[7, 1]]), ([1, 1, 2, 1], [[1, 2], [2, 1], [1, 1]]), ([3, 3, 3], [[3, 3]])])
  func eachRunIsReportedWithItsLength(elements: [Int], expected: [[Int]]) {
    var runs: [[Int]] = []
    elements.forEachRun { runs.append([$0, $1]) }
    #expect(runs == expected)
  }
}
