import Support
import Testing

@testable import Worker

struct SettledRunsTests {
  private func text(_ runs: [Range<Int64>], from position: Int64, limit: Int = 3_500) -> String? {
    var writer = SettledRuns.Writer(from: position, limit: limit)
    for run in runs { writer.append(run) }
    return writer.finish()
  }

  private func runs(_ text: String?, from position: Int64) -> [Range<Int64>] {
    Array(SettledRuns(text, from: position).ranges)
  }

  @Test func metadataTextIsStableBetweenVersions() {
    #expect(text([12..<13, 20..<120], from: 10) == "CBHkD")
    #expect(runs("CBHkD", from: 10) == [12..<13, 20..<120])
    #expect(text([], from: 10) == nil)
  }

  @Test func offsetsAreTakenInAscendingOrderWithHoles() {
    var settled = SettledRuns("CBHkD", from: 10)
    let answers = [10, 11, 12, 13, 19, 20, 64, 119, 120].map { settled.take($0) }
    #expect(answers == [false, false, true, false, false, true, true, true, false])
    #expect(settled.isEmpty)
  }

  @Test(arguments: 0..<50) func unionHasRunsOfBoth(seed: UInt64) {
    var random = SeededGenerator(seed: seed)
    var union = SettledRuns()
    var offsets: Set<Int64> = []
    for _ in 0..<Int.random(in: 0...8, using: &random) {
      let start = Int64.random(in: 0..<40, using: &random)
      let run = start..<start + Int64.random(in: 0...6, using: &random)
      union.formUnion(SettledRuns(run))
      offsets.formUnion(run)
    }
    let ranges = Array(union.ranges)
    #expect(Set(ranges.flatMap { $0 }) == offsets)
    // None empty, and none that continues the one before.
    #expect(ranges.allSatisfy { !$0.isEmpty })
    #expect(zip(ranges, ranges.dropFirst()).allSatisfy { $0.upperBound < $1.lowerBound })
  }

  @Test(arguments: 0..<50) func writtenMetadataIsReadAndCutAtLimit(seed: UInt64) {
    var random = SeededGenerator(seed: seed)
    let position = Int64.random(in: 0...(1 << Int64.random(in: 1...40, using: &random)), using: &random)
    var written: [Range<Int64>] = []
    var end = position
    for _ in 0..<Int.random(in: 0...300, using: &random) {
      let start =
        end
        + Int64.random(in: (end == position ? 0 : 1)...(1 << Int64.random(in: 1...24, using: &random)), using: &random)
      end = start + Int64.random(in: 1...(1 << Int64.random(in: 1...24, using: &random)), using: &random)
      written.append(start..<end)
    }
    let whole = text(written, from: position, limit: 1 << 20)
    #expect(runs(whole, from: position) == written)
    let limit = Int.random(in: 0...800, using: &random)
    let cut = text(written, from: position, limit: limit)
    #expect((cut?.utf8.count ?? 0) <= limit)
    #expect(cut?.utf8.allSatisfy { (0x21...0x7E).contains($0) } ?? true)
    let read = runs(cut, from: position)
    #expect(read == Array(written.prefix(read.count)))
    if let whole, whole.utf8.count <= limit { #expect(cut == whole) }
  }

  @Test(arguments: [
    "", "A", "AA", "BBAB", "BBBA", "CBH", "CBHk", "done:9,11", "C B", "CB\u{0}", "CB\n", "CBé", "gAB", "CBBBBBBB=",
    // Numbers, and sums of numbers, that no offset can be.
    "B//////////////H", "B////////////I", "B////////////H", "////////////HB",
    "l" + String(repeating: "A", count: 400), "" + String(repeating: "BB", count: 100_000),
  ])
  func foreignMetadataIsIgnored(text: String) {
    #expect(SettledRuns(text, from: 10).isEmpty)
    #expect(SettledRuns("CB", from: -1).isEmpty)
  }

  @Test(arguments: 0..<20) func randomBytesAreReadWithoutHarm(seed: UInt64) {
    var random = SeededGenerator(seed: seed)
    for _ in 0..<500 {
      let length = Int.random(in: 0...60, using: &random)
      let bytes = (0..<length).map { _ in
        Bool.random(using: &random)
          ? SettledRuns.digits.randomElement(using: &random)! : UInt8.random(in: 0...255, using: &random)
      }
      let position = Int64.random(in: .min ... .max, using: &random)
      let text = String(decoding: bytes, as: UTF8.self)
      let settled = SettledRuns(text, from: position)
      var end = position
      for range in settled.ranges {
        #expect(range.lowerBound >= end && !range.isEmpty)
        end = range.upperBound
      }
      // Whatever is understood is written alike.
      if !settled.isEmpty { #expect(self.text(Array(settled.ranges), from: position) == text) }
    }
  }
}
