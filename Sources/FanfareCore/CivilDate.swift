/// A day of the proleptic Gregorian calendar.
///
/// The conversions are the era arithmetic of H. Hinnant's "chrono-Compatible Low-Level Date Algorithms", without
/// tables, loops or allocations.
struct CivilDate: Equatable {
  let year: Int64
  let month: Int64
  let day: Int64

  /// The day `daysSinceEpoch` days after 1970-01-01.
  init(daysSinceEpoch: Int64) {
    let shifted = daysSinceEpoch + 719_468
    let era = (shifted >= 0 ? shifted : shifted - 146_096) / 146_097
    let dayOfEra = shifted - era * 146_097
    let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
    let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
    let monthFromMarch = (5 * dayOfYear + 2) / 153
    day = dayOfYear - (153 * monthFromMarch + 2) / 5 + 1
    month = monthFromMarch < 10 ? monthFromMarch + 3 : monthFromMarch - 9
    year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)
  }

  /// The given day; nil when it does not exist.
  init?(year: Int64, month: Int64, day: Int64) {
    guard (1...12).contains(month), day >= 1 else { return nil }
    let isLeap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
    let length: Int64 = month == 2 ? (isLeap ? 29 : 28) : [4, 6, 9, 11].contains(month) ? 30 : 31
    guard day <= length else { return nil }
    self.year = year
    self.month = month
    self.day = day
  }

  /// Days since 1970-01-01.
  var daysSinceEpoch: Int64 {
    let shiftedYear = month <= 2 ? year - 1 : year
    let era = (shiftedYear >= 0 ? shiftedYear : shiftedYear - 399) / 400
    let yearOfEra = shiftedYear - era * 400
    let dayOfYear = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1
    let dayOfEra = yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear
    return era * 146_097 + dayOfEra - 719_468
  }
}

extension UnixTime {
  /// The moment as an HTTP date in seconds (RFC 9110 §5.6.7): `Sat, 21 Nov 2026 08:00:00 GMT`.
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
  /// The quotient rounded down and the non-negative remainder. The divisor must be positive.
  fileprivate func quotientAndFloorModulo(_ divisor: Int64) -> (quotient: Int64, modulo: Int64) {
    let (quotient, remainder) = quotientAndRemainder(dividingBy: divisor)
    return remainder < 0 ? (quotient - 1, remainder + divisor) : (quotient, remainder)
  }
}
