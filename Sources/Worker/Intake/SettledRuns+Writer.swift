extension SettledRuns {
  /// Writes the text of runs that come in ascending order, as far as there is room: what finds none is done again after
  /// a crash, and nothing worse.
  struct Writer {
    private let limit: Int
    private var bytes: [UInt8] = []
    /// Where what is written ends.
    private var end: Int64
    /// The run that the next one may still continue.
    private var open: Range<Int64>?
    private(set) var isFull = false

    /// Begins a text that goes with `position`, of at most `limit` bytes.
    init(from position: Int64, limit: Int) {
      end = position
      self.limit = limit
    }

    /// Adds a run above all before; one that continues the last becomes part of it, and an empty one changes nothing.
    mutating func append(_ run: Range<Int64>) {
      guard !run.isEmpty else { return }
      if let last = open, last.upperBound == run.lowerBound {
        open = last.lowerBound..<run.upperBound
      } else {
        flush()
        open = run
      }
    }

    /// The text; nil when nothing was added, or nothing found room.
    mutating func finish() -> String? {
      flush()
      return bytes.isEmpty ? nil : String(decoding: bytes, as: UTF8.self)
    }

    private mutating func flush() {
      guard let run = open, !isFull else { return }
      open = nil
      let length = bytes.count
      if bytes.isEmpty { bytes += SettledRuns.mark.utf8 }
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
