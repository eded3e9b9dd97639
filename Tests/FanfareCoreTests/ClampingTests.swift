import FanfareCore
import Testing

@Suite struct ClampingTests {
  @Test func fractionsAreCutAndNumbersBeyondTheTypeAreItsNearestValue() {
    for (number, expected) in [
      (2.9, 2), (-2.9, -2), (0x1p53, 1 << 53), (0x1p62, 1 << 62), (-0x1p63, .min), (0x1p63, .max), (-0x1p64, .min),
      (.infinity, .max), (-.infinity, .min), (.nan, 0), (.greatestFiniteMagnitude, .max), (.leastNonzeroMagnitude, 0),
    ] {
      #expect(Int(clamping: number) == expected, "\(number)")
    }
    #expect(UInt32(clamping: -1.0) == 0)
    #expect(UInt32(clamping: 5e9) == .max)
    #expect(UInt64(clamping: 0x1p64) == .max)
  }

  @Test func resultsBeyondTheTypeAreItsNearestValue() {
    let edges: [Int8] = [.min, -127, -2, -1, 0, 1, 2, 126, .max]
    func clamped(_ exact: Int) -> Int8 { Int8(clamping: exact) }
    for left in edges {
      for right in edges {
        #expect(left.addingClamped(right) == clamped(Int(left) + Int(right)))
        #expect(left.subtractingClamped(right) == clamped(Int(left) - Int(right)))
        #expect(left.multipliedClamped(by: right) == clamped(Int(left) * Int(right)))
      }
    }
    #expect([Int.max, 1, -1].clampedSum() == .max - 1)
    var count = UInt8.max
    count.addClamped(1)
    #expect(count == .max)
  }

  @Test func timesSaturate() {
    let (first, last) = (UnixTime(milliseconds: .min), UnixTime(milliseconds: .max))
    #expect(last - first == .milliseconds(Int64.max))
    #expect(first - last == .milliseconds(Int64.min))
    #expect(last + .milliseconds(1) == last)
    #expect(first + .milliseconds(-1) == first)
    #expect(last + .seconds(Int64.max) == last)
    #expect(first.seconds == Int64.min / 1000 - 1)
    #expect(UnixTime(milliseconds: -1).seconds == -1)
    #expect(UnixTime(milliseconds: -1000).seconds == -1)
    #expect(UnixTime(milliseconds: -1001).seconds == -2)
    #expect(Duration.seconds(Int64.min).milliseconds == .min)
    #expect(Duration.microseconds(-1500).milliseconds == -1)
  }
}
