/// A moment of wall-clock time: milliseconds since 1970-01-01T00:00:00Z.
package struct UnixTime: Hashable, Comparable, Sendable {
  /// Milliseconds since the epoch; negative before it.
  package let milliseconds: Int64

  /// A moment so many milliseconds after the epoch.
  package init(milliseconds: Int64) {
    self.milliseconds = milliseconds
  }

  /// Whole seconds since the epoch, rounded down: what push services and tokens count in.
  package var seconds: Int64 { milliseconds >= 0 ? milliseconds / 1000 : (milliseconds - 999) / 1000 }

  package static func < (left: Self, right: Self) -> Bool { left.milliseconds < right.milliseconds }

  /// The moment so much later; saturates instead of overflowing.
  package static func + (time: Self, duration: Duration) -> Self {
    let (seconds, attoseconds) = duration.components
    let (product, overflow) = seconds.multipliedReportingOverflow(by: 1000)
    guard !overflow else { return Self(milliseconds: seconds > 0 ? .max : .min) }
    let (sum, sumOverflow) = time.milliseconds.addingReportingOverflow(product + attoseconds / 1_000_000_000_000_000)
    return Self(milliseconds: sumOverflow ? (seconds > 0 ? .max : .min) : sum)
  }

  /// The time from `right` to `left`; negative when `left` is earlier.
  package static func - (left: Self, right: Self) -> Duration {
    .milliseconds(left.milliseconds - right.milliseconds)
  }
}

extension UnixTime: LosslessStringConvertible {
  /// RFC 3339 in UTC with milliseconds: `2026-11-21T08:00:00.000Z`, 24 characters.
  package var description: String {
    var text: [UInt8] = []
    text.reserveCapacity(24)
    append(to: &text)
    return String(decoding: text, as: UTF8.self)
  }

  /// Appends `description`'s characters without making a string.
  package func append(to output: inout [UInt8]) {
    let day = milliseconds >= 0 ? milliseconds / 86_400_000 : (milliseconds - 86_399_999) / 86_400_000
    let rest = milliseconds - day * 86_400_000
    let date = CivilDate(daysSinceEpoch: day)
    output.append(addingCapacity: 24) { text in
      func two(_ value: Int64, _ end: UInt8) {
        text.append(UInt8(ascii: "0") + UInt8(truncatingIfNeeded: value / 10 % 10))
        text.append(UInt8(ascii: "0") + UInt8(truncatingIfNeeded: value % 10))
        text.append(end)
      }
      text.append(UInt8(ascii: "0") + UInt8(truncatingIfNeeded: date.year / 1000 % 10))
      text.append(UInt8(ascii: "0") + UInt8(truncatingIfNeeded: date.year / 100 % 10))
      two(date.year % 100, UInt8(ascii: "-"))
      two(date.month, UInt8(ascii: "-"))
      two(date.day, UInt8(ascii: "T"))
      two(rest / 3_600_000, UInt8(ascii: ":"))
      two(rest / 60_000 % 60, UInt8(ascii: ":"))
      two(rest / 1000 % 60, UInt8(ascii: "."))
      text.append(UInt8(ascii: "0") + UInt8(truncatingIfNeeded: rest / 100 % 10))
      two(rest % 100, UInt8(ascii: "Z"))
    }
  }

  /// Reads an RFC 3339 date-time with any fraction and offset (a leap second counts as the second before it); nil for anything else.
  package init?(_ text: String) {
    self.init(utf8: text.utf8)
  }

  /// Reads an RFC 3339 date-time from its bytes; see `init(_:)`.
  package init?(utf8 bytes: some Collection<UInt8>) {
    var rest = bytes[...]
    func number(_ count: Int) -> Int64? {
      var value: Int64 = 0
      for _ in 0..<count {
        guard let byte = rest.popFirst(), byte >= UInt8(ascii: "0"), byte <= UInt8(ascii: "9") else { return nil }
        value = value * 10 + Int64(byte - UInt8(ascii: "0"))
      }
      return value
    }
    func literal(_ characters: UInt8...) -> UInt8? {
      guard let byte = rest.first, characters.contains(byte) else { return nil }
      rest.removeFirst()
      return byte
    }
    let dash = UInt8(ascii: "-")
    let colon = UInt8(ascii: ":")
    guard let year = number(4), literal(dash) != nil, let month = number(2), literal(dash) != nil, let day = number(2),
      literal(UInt8(ascii: "T"), UInt8(ascii: "t"), UInt8(ascii: " ")) != nil,
      let hour = number(2), literal(colon) != nil, let minute = number(2), literal(colon) != nil, let second = number(2),
      let date = CivilDate(year: year, month: month, day: day), hour < 24, minute < 60, second <= 60
    else { return nil }
    var fraction: Int64 = 0
    if literal(UInt8(ascii: ".")) != nil {
      var scale: Int64 = 100
      guard let first = number(1) else { return nil }
      fraction = first * scale
      while let byte = rest.first, byte >= UInt8(ascii: "0"), byte <= UInt8(ascii: "9") {
        rest.removeFirst()
        scale /= 10
        fraction += Int64(byte - UInt8(ascii: "0")) * scale
      }
    }
    var offset: Int64 = 0
    if literal(UInt8(ascii: "Z"), UInt8(ascii: "z")) == nil {
      guard let sign = literal(UInt8(ascii: "+"), dash), let hours = number(2), literal(colon) != nil, let minutes = number(2),
        hours < 24, minutes < 60
      else { return nil }
      offset = (hours * 60 + minutes) * (sign == dash ? -1 : 1)
    }
    guard rest.isEmpty else { return nil }
    let wholeSeconds = date.daysSinceEpoch * 86_400 + hour * 3600 + (minute - offset) * 60 + min(second, 59)
    self.init(milliseconds: wholeSeconds * 1000 + fraction)
  }
}
