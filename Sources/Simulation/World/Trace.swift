/// The history of a world, a line for each event, and a digest of it: two runs with the same digest had the same
/// history.
///
/// `@unchecked Sendable`: it belongs to a `World`, and is used on that world's thread.
package final class Trace: @unchecked Sendable {
  /// FNV-1a of all lines and their times.
  package private(set) var digest = FNV1a()
  private let write: ((String) -> Void)?

  /// `write` is given every line; nil: only the digest is kept.
  package init(write: ((String) -> Void)? = nil) {
    self.write = write
  }

  /// Adds a line.
  func note(_ time: World.Time, _ line: String) {
    for shift in stride(from: 0, to: 64, by: 8) { digest.add(UInt8(truncatingIfNeeded: time >> shift)) }
    for byte in line.utf8 { digest.add(byte) }
    guard let write else { return }
    let microseconds = String(time % 1_000_000)
    write("\(time / 1_000_000).\(String(repeating: "0", count: 6 - microseconds.count))\(microseconds) \(line)")
  }
}

/// The hash FNV-1a of 64 bits, which is the same in every process.
package struct FNV1a: Sendable {
  package private(set) var value: UInt64 = 0xCBF2_9CE4_8422_2325

  mutating func add(_ byte: UInt8) { value = (value ^ UInt64(byte)) &* 0x100_0000_01B3 }

  /// The hash of some bytes.
  static func hash(_ bytes: some Sequence<UInt8>) -> UInt64 {
    var hash = FNV1a()
    for byte in bytes { hash.add(byte) }
    return hash.value
  }
}
