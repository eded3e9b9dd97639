/// The growth of a counter in each of the last fifteen minutes.
struct QuarterHour: Hashable, Sendable {
  static let minutes = 15

  private var buckets = [Double](repeating: 0, count: minutes)
  private var latest: Int64 = 0

  /// Adds to the current minute. `minute` never falls.
  mutating func add(_ amount: Double, at minute: Int64) {
    advance(to: minute)
    buckets[Int(minute % Int64(Self.minutes))] += amount
  }

  /// Forgets the minutes that have passed since the last call.
  mutating func advance(to minute: Int64) {
    guard minute > latest else { return }
    let passed = min(minute - latest, Int64(Self.minutes))
    for offset in 0..<passed { buckets[Int((minute - offset) % Int64(Self.minutes))] = 0 }
    latest = minute
  }

  var total: Double { buckets.reduce(0, +) }
}
