import DequeModule

/// Which offsets of a partition are settled above the position it is resumed from: what an owner leaves to the next one
/// in the metadata of its commit.
///
/// As text: a mark, then, from the position on, by turns how many offsets are not settled and how many are, each number
/// in base-64 digits of five bits, the lowest first, the sixth bit saying that another digit follows. All of it is
/// printable ASCII. A pure value.
struct SettledRuns: Sendable {
  /// Begins every text; no base-64 text of somebody else's can begin alike.
  static let mark = "settled1:"
  /// The base-64 digits in the order of their values.
  static let digits = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)
  /// No broker keeps longer ones unless told to; whatever is longer is not looked at.
  private static let longestText = 16_384

  /// Ascending, none empty; of offsets that are still to come.
  private var runs: Deque<Range<Int64>> = []

  /// Nothing is known to be settled.
  init() {}

  /// One run is settled.
  init(_ run: Range<Int64>) {
    if !run.isEmpty { runs = [run] }
  }

  /// What a text says that was committed with `position`. Anything that cannot have been written by `Writer` says
  /// nothing.
  init(_ text: String?, from position: Int64) {
    guard let text else { return }
    runs = Self.runs(text.utf8, from: position) ?? []
  }

  /// Whether nothing is known of any offset that is still to come.
  var isEmpty: Bool { runs.isEmpty }

  /// The runs, in ascending order.
  var ranges: some Sequence<Range<Int64>> { runs }

  /// Whether the offset is settled. Forgets all that lies below it: offsets are asked for in ascending order.
  mutating func take(_ offset: Int64) -> Bool {
    while let first = runs.first, first.upperBound <= offset { runs.removeFirst() }
    return runs.first.map { $0.lowerBound <= offset } ?? false
  }

  /// Adds what is settled according to `other`.
  mutating func formUnion(_ other: SettledRuns) {
    let all = (runs + other.runs).sorted { $0.lowerBound < $1.lowerBound }
    runs = []
    for run in all {
      if let last = runs.last, run.lowerBound <= last.upperBound {
        runs[runs.count - 1] = last.lowerBound..<max(last.upperBound, run.upperBound)
      } else {
        runs.append(run)
      }
    }
  }

  private static func runs(_ text: String.UTF8View, from position: Int64) -> Deque<Range<Int64>>? {
    guard position >= 0, text.count <= longestText, text.starts(with: mark.utf8) else { return nil }
    var rest = text.dropFirst(mark.utf8.count)
    var runs: Deque<Range<Int64>> = []
    var end = position
    while !rest.isEmpty {
      guard let gap = number(&rest), let length = number(&rest), length > 0, gap > 0 || runs.isEmpty else { return nil }
      let (start, isStartTooLarge) = end.addingReportingOverflow(gap)
      let (next, isEndTooLarge) = start.addingReportingOverflow(length)
      guard !isStartTooLarge, !isEndTooLarge else { return nil }
      runs.append(start..<next)
      end = next
    }
    return runs
  }

  private static func number(_ text: inout Substring.UTF8View) -> Int64? {
    var number: Int64 = 0
    var shift: Int64 = 0
    while let digit = text.popFirst() {
      guard let value = value(of: digit) else { return nil }
      let bits = value & 31
      guard shift < 60 || (shift == 60 && bits < 8) else { return nil }
      number |= bits << shift
      // The last digit of a longer number is not 0: each number is written in one way.
      if value < 32 { return bits == 0 && shift > 0 ? nil : number }
      shift += 5
    }
    return nil
  }

  private static func value(of digit: UInt8) -> Int64? {
    switch digit {
    case UInt8(ascii: "A")...UInt8(ascii: "Z"): Int64(digit - UInt8(ascii: "A"))
    case UInt8(ascii: "a")...UInt8(ascii: "z"): Int64(digit - UInt8(ascii: "a")) + 26
    case UInt8(ascii: "0")...UInt8(ascii: "9"): Int64(digit - UInt8(ascii: "0")) + 52
    case UInt8(ascii: "+"): 62
    case UInt8(ascii: "/"): 63
    default: nil
    }
  }
}
