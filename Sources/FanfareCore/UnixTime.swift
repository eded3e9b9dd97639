import FoundationEssentials

/// A moment of wall-clock time: milliseconds since 1970-01-01T00:00:00Z.
package struct UnixTime: Hashable, Comparable, Sendable {
  /// Milliseconds since the epoch; negative before it.
  package let milliseconds: Int64

  package init(milliseconds: Int64) {
    self.milliseconds = milliseconds
  }

  /// Microseconds since the epoch, the unit of reservations; saturates.
  package var microseconds: Int64 { milliseconds.multipliedClamped(by: 1000) }

  /// Whole seconds since the epoch, rounded down: the unit of push services and tokens.
  package var seconds: Int64 { milliseconds >= 0 ? milliseconds / 1000 : (milliseconds + 1) / 1000 - 1 }

  package static func < (left: Self, right: Self) -> Bool { left.milliseconds < right.milliseconds }

  /// The moment after `duration`. Saturates instead of overflowing.
  package static func + (time: Self, duration: Duration) -> Self {
    Self(milliseconds: time.milliseconds.addingClamped(duration.milliseconds))
  }

  /// The time from `right` to `left`; negative if `left` is earlier. Saturates instead of overflowing.
  package static func - (left: Self, right: Self) -> Duration {
    .milliseconds(left.milliseconds.subtractingClamped(right.milliseconds))
  }
}

extension Duration {
  /// Whole milliseconds, without the fraction; saturates.
  package var milliseconds: Int64 {
    let (seconds, attoseconds) = components
    return seconds.multipliedClamped(by: 1000).addingClamped(attoseconds / 1_000_000_000_000_000)
  }
}

extension UnixTime: LosslessStringConvertible {
  /// The years 0 to 9999, which RFC 3339 §1 can express.
  private static let writableRange: ClosedRange<Int64> = -62_167_219_200_000...253_402_300_799_999

  /// The nearest moment that RFC 3339 can express.
  package var writable: UnixTime {
    UnixTime(milliseconds: min(max(milliseconds, Self.writableRange.lowerBound), Self.writableRange.upperBound))
  }

  /// RFC 3339 in UTC with milliseconds, 24 characters: `2026-11-21T08:00:00.000Z`.
  /// It writes `writable`.
  package var description: String {
    var text: [UInt8] = []
    text.reserveCapacity(24)
    append(to: &text)
    return String(decoding: text, as: UTF8.self)
  }

  /// Appends the characters of `description` without creating a string.
  package func append(to output: inout [UInt8]) {
    let milliseconds = writable.milliseconds
    let day = milliseconds >= 0 ? milliseconds / 86_400_000 : (milliseconds - 86_399_999) / 86_400_000
    let rest = milliseconds - day * 86_400_000
    let date = CivilDate(daysSinceEpoch: day)
    output.append(addingCapacity: 24) { text in
      func two(_ value: Int64, _ end: UInt8) {
        text.append(
          bytesOf: UInt16(truncatingIfNeeded: value / 10 % 10) << 8 + UInt16(truncatingIfNeeded: value % 10) + 0x3030)
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

  /// Parses an RFC 3339 date-time with any fraction and offset.
  /// A leap second is read as the second before it.
  ///
  /// Nil for any other text, and for moments before the year 0 or after the year 9999 in UTC.
  package init?(_ text: String) {
    self.init(utf8: text.utf8Span.span)
  }

  /// Parses an RFC 3339 date-time in UTF-8; see `init(_:)`.
  package init?(utf8 text: Span<UInt8>) {
    let dash = UInt8(ascii: "-")
    let colon = UInt8(ascii: ":")
    var at = 0
    guard let year = text.number(4, &at), text.has(dash, &at), let month = text.number(2, &at), text.has(dash, &at),
      let day = text.number(2, &at),
      text.has(UInt8(ascii: "T"), &at) || text.has(UInt8(ascii: "t"), &at) || text.has(UInt8(ascii: " "), &at),
      let hour = text.number(2, &at), text.has(colon, &at), let minute = text.number(2, &at), text.has(colon, &at),
      let second = text.number(2, &at), let date = CivilDate(year: year, month: month, day: day), hour < 24,
      minute < 60, second <= 60
    else { return nil }
    var fraction: Int64 = 0
    if text.has(UInt8(ascii: "."), &at) {
      var scale: Int64 = 100
      guard let first = text.number(1, &at) else { return nil }
      fraction = first * scale
      while let digit = text.number(1, &at) {
        scale /= 10
        fraction += digit * scale
      }
    }
    var offset: Int64 = 0
    if !text.has(UInt8(ascii: "Z"), &at), !text.has(UInt8(ascii: "z"), &at) {
      let isWest = text.has(dash, &at)
      guard isWest || text.has(UInt8(ascii: "+"), &at), let hours = text.number(2, &at), text.has(colon, &at),
        let minutes = text.number(2, &at), hours < 24, minutes < 60
      else { return nil }
      offset = (hours * 60 + minutes) * (isWest ? -1 : 1)
    }
    guard at == text.count else { return nil }
    let wholeSeconds = date.daysSinceEpoch * 86_400 + hour * 3600 + (minute - offset) * 60 + min(second, 59)
    // The offset can move the moment out of the range.
    let milliseconds = wholeSeconds * 1000 + fraction
    guard Self.writableRange.contains(milliseconds) else { return nil }
    self.init(milliseconds: milliseconds)
  }
}

extension Span<UInt8> {
  /// Reads a number of `digits` digits at `index` and advances `index`; nil if there are fewer
  /// digits.
  fileprivate func number(_ digits: Int, _ index: inout Int) -> Int64? {
    guard index + digits <= count else { return nil }
    var value: Int64 = 0
    for place in index..<(index + digits) {
      let digit = self[place] &- UInt8(ascii: "0")
      guard digit < 10 else { return nil }
      value = value * 10 + Int64(digit)
    }
    index += digits
    return value
  }

  /// Whether the character is at `index`. If so, advances `index`.
  fileprivate func has(_ character: UInt8, _ index: inout Int) -> Bool {
    guard index < count, self[index] == character else { return false }
    index += 1
    return true
  }
}

/// A source of the current time.
/// All code that stamps or expires uses one, so that tests can control time.
package protocol WallClock: Sendable {
  /// The current time.
  /// Callable from any thread. It may step in either direction, like the machine's clock.
  func now() -> UnixTime
}

/// The machine's clock.
package struct SystemWallClock: WallClock {
  package init() {}

  package func now() -> UnixTime {
    UnixTime(milliseconds: Int64(clamping: Date().timeIntervalSince1970 * 1000))
  }
}
