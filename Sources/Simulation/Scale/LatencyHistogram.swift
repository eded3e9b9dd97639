import FanfareCore

/// A histogram of times with a precision of three percent.
struct LatencyHistogram: Sendable {
  /// Buckets in each doubling.
  private static let parts = 32
  private var counts = [Int](repeating: 0, count: 40 * parts)
  private(set) var total = 0

  /// Counts a time in microseconds.
  @inline(__always)
  mutating func add(_ time: World.Time) {
    counts[Self.bucket(of: time)] += 1
    total += 1
  }

  @inline(__always)
  private static func bucket(of time: World.Time) -> Int {
    let time = Int(max(0, time))
    guard time >= parts else { return time }
    let exponent = Int.bitWidth - 1 - time.leadingZeroBitCount - 5
    return min(40 * parts - 1, (exponent + 1) * parts + (time >> exponent) - parts)
  }

  /// The time below which a share of all times lies, in microseconds; 0 if there are none.
  func quantile(_ share: Double) -> World.Time {
    var rest = Int(clamping: (Double(total) * share).rounded(.up))
    for (index, count) in counts.enumerated() where count > 0 {
      rest -= count
      if rest <= 0 { return Self.time(ofBucket: index) }
    }
    return 0
  }

  private static func time(ofBucket index: Int) -> World.Time {
    guard index >= parts else { return World.Time(index) }
    let exponent = index / parts - 1
    return World.Time((parts + index % parts) << exponent)
  }
}
