extension UnixTime {
  /// The moment as HTTP writes it (RFC 9110 §5.6.7), to the second: `Sat, 21 Nov 2026 08:00:00 GMT`.
  package var httpDate: String {
    let (day, second) = seconds.quotientAndFloorModulo(86_400)
    let date = CivilDate(daysSinceEpoch: day)
    func digits(_ number: Int64) -> String { number < 10 ? "0\(number)" : "\(number)" }
    // The epoch was a Thursday.
    let weekday = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"][Int(day.quotientAndFloorModulo(7).modulo)]
    let month = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"][
      Int(date.month - 1)]
    let time = "\(digits(second / 3600)):\(digits(second / 60 % 60)):\(digits(second % 60))"
    return "\(weekday), \(digits(date.day)) \(month) \(date.year) \(time) GMT"
  }
}

extension Int64 {
  /// The quotient rounded down, and the remainder that is never negative; the divisor must be positive.
  fileprivate func quotientAndFloorModulo(_ divisor: Int64) -> (quotient: Int64, modulo: Int64) {
    let (quotient, remainder) = quotientAndRemainder(dividingBy: divisor)
    return remainder < 0 ? (quotient - 1, remainder + divisor) : (quotient, remainder)
  }
}
