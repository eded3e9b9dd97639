import DequeModule

/// The settled offsets of a partition above its position.
/// An owner leaves them to the next one in the metadata of its commit.
///
/// As text: from the position on, the alternating lengths of unsettled and settled runs. Each length is
/// written in base-64 digits of five bits, the lowest first; the sixth bit says that another digit follows. All
/// characters are printable ASCII.
struct SettledRuns: Sendable {
  /// The base-64 digits in the order of their values.
  static let digits = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)
  /// Longer texts are ignored: no broker keeps them with its default settings.
  static let longestText = 16_384

  /// Ascending, non-empty runs of offsets still to be read.
  private var runs: Deque<Range<Int64>> = []

  /// Empty: no offset is known to be settled.
  init() {}

  /// One run is settled.
  init(_ run: Range<Int64>) {
    if !run.isEmpty { runs = [run] }
  }

  /// Reads a text committed with `position`.
  /// A text that `Writer` cannot have written counts as empty.
  init(_ text: String?, from position: Int64) {
    guard let text else { return }
    runs = Self.runs(text.utf8, from: position) ?? []
  }

  /// Whether no offset still to be read is known to be settled.
  var isEmpty: Bool { runs.isEmpty }

  /// The runs, in ascending order.
  var ranges: some Sequence<Range<Int64>> { runs }

  /// Whether the offset is settled. Forgets all lower offsets: call it in ascending order.
  mutating func take(_ offset: Int64) -> Bool {
    while let first = runs.first, first.upperBound <= offset { runs.removeFirst() }
    return runs.first.map { $0.lowerBound <= offset } ?? false
  }

  /// Adds the runs of `other`.
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
    guard position >= 0, text.count <= longestText else { return nil }
    var rest = text[...]
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
      // The last digit of a longer number is not 0: each number has one spelling.
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

extension SettledRuns {
  /// Writes the text of runs added in ascending order, as far as there is room.
  /// A crash repeats the runs without room.
  struct Writer {
    private let limit: Int
    private var bytes: [UInt8] = []
    /// The end of the last run written.
    private var end: Int64
    /// The run that the next one may still continue.
    private var open: Range<Int64>?
    private(set) var isFull = false

    /// A text of at most `limit` bytes, to be committed with `position`.
    init(from position: Int64, limit: Int) {
      end = position
      self.limit = limit
    }

    /// Adds a run above all before, or continues the last one. Ignores an empty run.
    mutating func append(_ run: Range<Int64>) {
      guard !run.isEmpty else { return }
      if let last = open, last.upperBound == run.lowerBound {
        open = last.lowerBound..<run.upperBound
      } else {
        flush()
        open = run
      }
    }

    /// The text; nil if no run was added or had room.
    mutating func finish() -> String? {
      flush()
      return bytes.isEmpty ? nil : String(decoding: bytes, as: UTF8.self)
    }

    private mutating func flush() {
      guard let run = open, !isFull else { return }
      open = nil
      let length = bytes.count
      write(run.lowerBound - end)
      write(run.upperBound - run.lowerBound)
      end = run.upperBound
      guard bytes.count > limit else { return }
      bytes.removeSubrange(length...)
      isFull = true
    }

    private mutating func write(_ number: Int64) {
      var rest = number
      while rest >= 32 {
        bytes.append(SettledRuns.digits[Int(rest & 31) + 32])
        rest >>= 5
      }
      bytes.append(SettledRuns.digits[Int(rest)])
    }
  }
}
