import FanfareCore
import Foundation

extension OutcomeCounts {
  /// As a column keeps it: for each kind its two numbers in one byte, and the count as a varint.
  var stored: Data { Data(storedBytes) }

  /// The same as bytes.
  var storedBytes: [UInt8] {
    var output: [UInt8] = []
    for (kind, count) in entries {
      output.append(StoredCode.code(kind.platform) << 4 | StoredCode.code(kind.outcome))
      output.appendVarint(UInt64(max(0, count)))
    }
    return output
  }

  /// Reads a column; nil when no release has written it.
  init?(stored: Data) {
    self.init()
    var input = [UInt8](stored)[...]
    while let kind = input.popFirst() {
      guard let platform = StoredCode.platform(kind >> 4), let outcome = StoredCode.outcome(kind & 0xF),
        let count = input.popVarint()
      else { return nil }
      add(Int(clamping: count), to: Kind(platform, outcome))
    }
  }
}
