/// What has happened, a line each, and a digest of it: two runs with the same digest had the same history.
///
/// `@unchecked Sendable`: it belongs to a `World`, and is used on that world's thread.
package final class Trace: @unchecked Sendable {
  /// FNV-1a of all lines.
  package private(set) var digest: UInt64 = 0xCBF2_9CE4_8422_2325
  package private(set) var lines = 0
  private let write: ((String) -> Void)?

  /// `write` is given every line; nil: only the digest is kept.
  package init(write: ((String) -> Void)? = nil) {
    self.write = write
  }

  /// Adds a line.
  func note(_ time: World.Time, _ line: String) {
    lines += 1
    add(UInt64(bitPattern: time))
    for byte in line.utf8 { digest = (digest ^ UInt64(byte)) &* 0x100_0000_01B3 }
    guard let write else { return }
    let microseconds = String(time % 1_000_000)
    write("\(time / 1_000_000).\(String(repeating: "0", count: 6 - microseconds.count))\(microseconds) \(line)")
  }

  private func add(_ word: UInt64) {
    for shift in stride(from: 0, to: 64, by: 8) { digest = (digest ^ (word >> shift & 0xFF)) &* 0x100_0000_01B3 }
  }
}
