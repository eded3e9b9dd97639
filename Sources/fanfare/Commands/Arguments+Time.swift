import ArgumentParser
import FanfareCore

/// A time on the command line: RFC 3339, `now`, or relative to now, such as `-1h`, `-1d12h` and `+30m`.
///
/// Options of this type have the parsing strategy `unconditional`: the parser would take `-1h` for options.
struct TimeArgument: ExpressibleByArgument {
  let time: UnixTime

  init?(argument: String) { self.init(argument, at: SystemWallClock().now()) }

  init?(_ text: String, at now: UnixTime) {
    if let time = UnixTime(text) {
      self.time = time
    } else if text == "now" {
      time = now
    } else if let sign = text.first, sign == "-" || sign == "+",
      let span = SpanArgument(argument: String(text.dropFirst()))
    {
      time = now + (sign == "-" ? .zero - span.duration : span.duration)
    } else {
      return nil
    }
  }

  static let help = "RFC 3339, or relative to now: -1h, -2d, +30m"
}

/// A length of time on the command line: seconds, or numbers with units, such as `90`, `15m`, `1h30m` and `2d`.
struct SpanArgument: ExpressibleByArgument {
  let duration: Duration

  init(_ duration: Duration) { self.duration = duration }

  private static let units: [Character: Int64] = ["s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800]
  /// A hundred years.
  private static let maximum: Int64 = 3_155_760_000

  init?(argument: String) {
    var (total, rest): (Int64, Substring) = (0, argument[...])
    if let seconds = Int64(argument), argument.first?.isNumber == true {
      (total, rest) = (seconds, "")
    }
    guard !argument.isEmpty else { return nil }
    while !rest.isEmpty {
      let digits = rest.prefix { $0.isASCII && $0.isNumber }
      guard let number = Int64(digits), number <= Self.maximum, let unit = rest.dropFirst(digits.count).first,
        let seconds = Self.units[unit]
      else { return nil }
      total += number * seconds
      guard total <= Self.maximum else { return nil }
      rest = rest.dropFirst(digits.count + 1)
    }
    guard (0...Self.maximum).contains(total) else { return nil }
    duration = .seconds(total)
  }

  var defaultValueDescription: String { "\(duration.components.seconds)s" }
}

extension UnixTime {
  /// The distance from now, in its largest unit, for tables: `3 min ago`, `in 2 h`.
  func relative(to now: UnixTime) -> String {
    let seconds = (now - self) / .seconds(1)
    let size = abs(seconds)
    let text =
      switch size {
      case ..<1: "now"
      case ..<60: "\(Int(clamping: size)) s"
      case ..<3600: "\(Int(clamping: size / 60)) min"
      case ..<86_400: "\(Int(clamping: size / 3600)) h"
      default: "\(Int(clamping: size / 86_400)) d"
      }
    guard size >= 1 else { return text }
    return seconds > 0 ? "\(text) ago" : "in \(text)"
  }
}
