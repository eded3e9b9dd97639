import FanfareCore

/// The forms of times in Azure's protocol.
enum AzureTime {
  /// A time in error texts: `11/7/2018 12:18:37 AM`.
  static func invariant(_ time: UnixTime) -> String {
    // 2026-11-07T12:18:37.000Z
    let digits = Array(time.description.utf8)
    func number(_ range: Range<Int>) -> Int { digits[range].reduce(0) { $0 * 10 + Int($1 & 0x0F) } }
    func padded(_ number: Int) -> String { number < 10 ? "0\(number)" : "\(number)" }
    let hour = number(11..<13)
    return "\(number(5..<7))/\(number(8..<10))/\(number(0..<4)) \(hour % 12 == 0 ? 12 : hour % 12):"
      + "\(padded(number(14..<16))):\(padded(number(17..<19))) \(hour < 12 ? "AM" : "PM")"
  }
}
